"""The torch version that is checked for, and the one that is installed."""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from breakscan.model.findings import CheckTarget
from breakscan.model.torch_versions import has_compiler, is_version, minor_version
from breakscan.rulebook.config.errors import ConfigError
from breakscan.rulebook.config.settings import Settings
from breakscan.rulebook.ledger import ledger_version_for, measured_versions


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
    """What is checked for under some settings, without repetition."""
    targets: dict[CheckTarget, None] = {}
    for one in settings:
        target = resolve_target(one)
        targets[CheckTarget(target.torch, target.ledger, one.mode)] = None
    return tuple(targets)
