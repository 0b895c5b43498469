"""The settings that a file is checked under, the torch version that is checked for, and the one that is installed."""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, Protocol

from breakscan.model.findings import CheckTarget, Confidence, Mode
from breakscan.model.observations import Observations
from breakscan.model.torch_versions import has_compiler, is_version, minor_version
from breakscan.rulebook.config.keys import (
    ConfigError,
    Key,
    one_of,
    path_of,
    read_boolean,
    read_folders,
    read_patterns,
    read_selectors,
    read_selectors_by_pattern,
    read_torch_version,
)
from breakscan.rulebook.ledger import ledger_version_for, measured_versions
from breakscan.rulebook.library import Library, load_library
from breakscan.source.paths import PathPattern, exactness, selects

Regions = Literal["auto", "roots", "modules", "all"]
REGIONS = ("auto", "roots", "modules", "all")
Way = Literal["compile", "export", "export-strict"]
WAYS = ("compile", "export", "export-strict")
CONFIDENCES = tuple(one.value for one in Confidence)
CACHE_FOLDER = ".breakscan_cache"

KEY = "key"
"""The entry of a field's metadata that holds its :class:`Key`: only such fields can stand in a file."""


class FileSettings(Protocol):
    """The settings of each file: the same for all (:class:`Settings`), or those nearest to each
    (:class:`.NearestSettings`)."""

    def of(self, path: Path) -> Settings:
        """The settings of a file or folder at an absolute path, by the folder that it lies in."""

    def changed(self, **values: Any) -> FileSettings:
        """The same settings, but with these values for all files."""


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings of one file or more.  ``root`` is the folder of the configuration file, ``options`` names the
    settings that came from the command line, ``origins`` has the fields that files set, each with the file;
    ``observations`` is what recorded runs showed of values."""

    root: Path
    config_file: Path | None = None
    target_torch: str | None = field(default=None, metadata={KEY: Key("target-torch", read_torch_version)})
    target: Way = field(default="compile", metadata={KEY: Key("target", one_of(WAYS))})
    fullgraph: bool = field(default=False, metadata={KEY: Key("fullgraph", read_boolean)})
    regions: Regions = field(default="auto", metadata={KEY: Key("regions", one_of(REGIONS))})
    confidence: Confidence = field(
        default=Confidence.CONDITIONAL, metadata={KEY: Key("confidence", one_of(CONFIDENCES, Confidence))}
    )
    select: tuple[str, ...] = field(default=("ALL",), metadata={KEY: Key("select", read_selectors)})
    ignore: tuple[str, ...] = field(default=(), metadata={KEY: Key("ignore", read_selectors, adds=True)})
    per_file_ignores: tuple[tuple[PathPattern, tuple[str, ...]], ...] = field(
        default=(), metadata={KEY: Key("per-file-ignores", read_selectors_by_pattern, adds=True)}
    )
    exclude: tuple[PathPattern, ...] = field(default=(), metadata={KEY: Key("exclude", read_patterns, adds=True)})
    rule_folders: tuple[Path, ...] = field(default=(), metadata={KEY: Key("rules", read_folders, adds=True)})
    baseline: Path | None = field(default=None, metadata={KEY: Key("baseline", path_of("file"))})
    cache_dir: Path | None = field(default=None, metadata={KEY: Key("cache-dir", path_of("folder"))})
    no_cache: bool = False
    observations: Observations | None = None
    options: frozenset[str] = frozenset()
    origins: tuple[tuple[str, Path], ...] = field(default=(), compare=False)

    def of(self, path: Path) -> Settings:
        """These, for any file: see :class:`FileSettings`."""
        return self

    def changed(self, **values: Any) -> Settings:
        """These with other values: see :class:`FileSettings`."""
        return replace(self, **values)

    @property
    def mode(self) -> Mode:
        if self.target != "compile":
            return Mode(self.target)
        return Mode.FULLGRAPH if self.fullgraph else Mode.DEFAULT

    @property
    def cache_folder(self) -> Path | None:
        """The folder for cached results; None if nothing is cached."""
        return None if self.no_cache else self.cache_dir or self.root / CACHE_FOLDER


def enabled_rules(settings: Settings, library: Library) -> frozenset[str]:
    """The ids that ``select`` and ``ignore`` leave: the more specific selector wins, and ``ignore`` among equals."""
    enabled = set()
    for rule in library:
        wanted = max((exactness(s) for s in settings.select if selects(s, rule.id, rule.name)), default=-1)
        refused = max((exactness(s) for s in settings.ignore if selects(s, rule.id, rule.name)), default=-1)
        if wanted > refused:
            enabled.add(rule.id)
    return frozenset(enabled)


def library_of(settings: Iterable[Settings]) -> Library:
    """The rules that count under any of some settings.  Raises RuleError where two of them call one id theirs."""
    return load_library(tuple(dict.fromkeys(folder for one in settings for folder in one.rule_folders)))


@dataclass(frozen=True, slots=True)
class Target:
    """The target torch version, as ``2.13``; ``ledger`` is the measured version that is used for it."""

    torch: str
    source: Literal["config", "option", "installed", "newest measured"]
    ledger: str


def resolve_target(settings: Settings) -> Target:
    """The torch version to check for: the configured one, else the installed one, else the newest measured.

    Reads the installed torch's ``version.py`` without importing torch.  Raises ConfigError if the
    installation of breakscan has no verdicts at all.
    """
    measured = measured_versions()
    if not measured:
        raise ConfigError("breakscan's verdict ledgers are missing: reinstall breakscan")
    if settings.target_torch is not None:
        source: Literal["config", "option"] = "option" if "target_torch" in settings.options else "config"
        torch = minor_version(settings.target_torch)
        return Target(torch, source, ledger_version_for(torch))
    if installed := installed_torch():
        torch = minor_version(installed)
        if not has_compiler(installed):
            remedy = f"set target-torch to the version that you will use, such as {measured[-1]}"
            raise ConfigError(f"the installed torch {torch} has no torch.compile: {remedy}")
        return Target(torch, "installed", ledger_version_for(torch))
    return Target(measured[-1], "newest measured", measured[-1])


def installed_torch() -> str | None:
    """The version of the torch that this Python would import, read from its ``version.py``; None without one."""
    try:
        spec = importlib.util.find_spec("torch")
    except (ImportError, ValueError):
        return None
    for folder in (spec.submodule_search_locations or ()) if spec else ():
        try:
            text = (Path(folder) / "version.py").read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError):
            continue
        if match := re.search(r"^__version__\s*(?::[^=]+)?=\s*['\"](\d+\.\d+[^'\"]*)", text, re.MULTILINE):
            return match[1] if is_version(match[1]) else None
    return None


def check_targets(settings: Iterable[Settings]) -> tuple[CheckTarget, ...]:
    """The targets of some settings, without repetition."""
    targets: dict[CheckTarget, None] = {}
    for one in settings:
        target = resolve_target(one)
        targets[CheckTarget(target.torch, target.ledger, one.mode)] = None
    return tuple(targets)
