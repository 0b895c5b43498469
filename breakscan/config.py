"""The settings, from ``[tool.breakscan]`` of a ``pyproject.toml`` and the command-line options."""

from __future__ import annotations

import importlib.util
import os
import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, Literal

from breakscan.findings import Confidence, Mode
from breakscan.observations import Observations
from breakscan.rulebook.document import nearest
from breakscan.rulebook.ledger import ledger_version_for, measured_versions
from breakscan.rulebook.library import Library, load_library
from breakscan.source.paths import Patterns
from breakscan.source.selectors import exactness, selects
from breakscan.torch_versions import minor_version

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

Regions = Literal["auto", "roots", "modules", "all"]
REGIONS = ("auto", "roots", "modules", "all")
Way = Literal["compile", "export", "export-strict"]
WAYS = ("compile", "export", "export-strict")
CACHE_FOLDER = ".breakscan_cache"
CACHE_VARIABLE = "BREAKSCAN_CACHE_DIR"


class ConfigError(Exception):
    """A configuration file or option is wrong.  Names the file and line (from 1), or the option, and the key."""

    def __init__(self, message: str, *, path: Path | None = None, line: int = 1, key: str | None = None) -> None:
        self.path = path
        self.line = line
        self.key = key
        self.reason = message
        where = f"{path}:{line}: " if path else ""
        what = (key if path else f"--{key}") if key else ""
        super().__init__(f"{where}{what}{': ' if what else ''}{message}")


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings of a run.  ``root`` is the folder that patterns are relative to, ``options`` names the settings
    that came from the command line, ``observations`` what recorded runs showed of values."""

    root: Path
    config_file: Path | None = None
    target_torch: str | None = None
    target: Way = "compile"
    fullgraph: bool = False
    regions: Regions = "auto"
    select: tuple[str, ...] = ("ALL",)
    ignore: tuple[str, ...] = ()
    per_file_ignores: tuple[tuple[str, tuple[str, ...]], ...] = ()
    exclude: tuple[str, ...] = ()
    rule_folders: tuple[Path, ...] = ()
    confidence: Confidence = Confidence.CONDITIONAL
    no_cache: bool = False
    cache_dir: Path | None = None
    observations: Observations | None = None
    options: frozenset[str] = frozenset()

    @property
    def mode(self) -> Mode:
        if self.target != "compile":
            return Mode(self.target)
        return Mode.FULLGRAPH if self.fullgraph else Mode.DEFAULT

    @property
    def cache_folder(self) -> Path | None:
        """The folder for cached results; None if nothing is cached."""
        return None if self.no_cache else self.cache_dir or self.root / CACHE_FOLDER


@dataclass(frozen=True, slots=True)
class Target:
    """The target torch version, as ``2.13``; ``ledger`` is the measured version that is used for it."""

    torch: str
    source: Literal["config", "option", "installed", "newest measured"]
    ledger: str


def load_settings(start: Path, config: Path | None = None, **overrides: Any) -> Settings:
    """The settings of the nearest ``pyproject.toml`` with a ``[tool.breakscan]`` table, from ``start`` upwards.

    ``config`` names a file instead.  ``overrides`` are values from the command line, by field name; None leaves
    a setting as it is.  ``exclude`` and ``ignore`` add to the file's, the others replace it; a ``select`` from
    the command line also drops the file's ``ignore``, and ``target`` and ``fullgraph`` each replace both.  The
    environment's ``BREAKSCAN_CACHE_DIR`` replaces the file's ``cache-dir``.

    Raises ConfigError for a wrong key, value or file, and RuleError for a malformed rule of the user.
    """
    found = Path(os.path.abspath(config)) if config else find_config(start)
    settings = _read_config(found, required=config is not None) if found else Settings(root=Path.cwd())
    if from_environment := os.environ.get(CACHE_VARIABLE):
        settings = replace(settings, cache_dir=_folder(from_environment, Path.cwd()))
    return _with_overrides(settings, {key: value for key, value in overrides.items() if value is not None})


def find_config(start: Path) -> Path | None:
    """The nearest ``pyproject.toml`` with a ``[tool.breakscan]`` table; files without it are skipped."""
    start = Path(os.path.abspath(start))
    for folder in (start, *start.parents):
        candidate = folder / "pyproject.toml"
        if candidate.is_file() and _table(_load(candidate)) is not None:
            return candidate
    return None


def enabled_rules(settings: Settings, library: Library) -> frozenset[str]:
    """The ids that ``select`` and ``ignore`` leave: the more specific selector wins, and ``ignore`` among equals."""
    enabled = set()
    for rule in library:
        wanted = max((exactness(s) for s in settings.select if selects(s, rule.id, rule.name)), default=-1)
        refused = max((exactness(s) for s in settings.ignore if selects(s, rule.id, rule.name)), default=-1)
        if wanted > refused:
            enabled.add(rule.id)
    return frozenset(enabled)


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
            return match[1]
    return None


def _load(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except tomllib.TOMLDecodeError as error:
        at = re.search(r"\(at line (\d+)", str(error))
        raise ConfigError(f"not valid TOML: {error}", path=path, line=int(at[1]) if at else 1) from error
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise ConfigError(f"cannot be read: {reason}", path=path) from error


def _table(data: Mapping[str, Any]) -> object:
    tool = data.get("tool")
    return tool.get("breakscan") if isinstance(tool, dict) else None


def _read_config(path: Path, *, required: bool) -> Settings:
    table = _table(_load(path))
    if table is None and required:
        raise ConfigError("has no [tool.breakscan] table", path=path)
    return _Reader(path, table).settings()


class _Reader:
    """Converts a ``[tool.breakscan]`` table into settings, or reports which line of the file is wrong, and why."""

    def __init__(self, path: Path, table: object) -> None:
        self.path = path
        self.lines = path.read_text(encoding="utf-8").splitlines()
        if not isinstance(table, dict):
            raise ConfigError("must be a table", path=path, line=self.line_of("tool.breakscan"), key="tool.breakscan")
        self.table: dict[str, Any] = table
        self.root = path.parent

    def settings(self) -> Settings:
        readers: dict[str, tuple[str, Callable[[str], object]]] = {
            "target-torch": ("target_torch", self.version),
            "target": ("target", lambda key: self.word(key, WAYS)),
            "fullgraph": ("fullgraph", self.boolean),
            "regions": ("regions", lambda key: self.word(key, REGIONS)),
            "confidence": ("confidence", lambda key: Confidence(self.word(key, [c.value for c in Confidence]))),
            "rules": ("rule_folders", self.folders),
            "select": ("select", self.selectors),
            "ignore": ("ignore", self.selectors),
            "per-file-ignores": ("per_file_ignores", self.per_file_ignores),
            "exclude": ("exclude", self.patterns),
            "cache-dir": ("cache_dir", self.folder_to_be),
        }
        for key in self.table:
            if key not in readers:
                hint = nearest(key.replace("_", "-").lower(), readers) or f" (known: {', '.join(readers)})"
                raise self.fail(f"unknown key{hint}", key)
        values = {field: read(key) for key, (field, read) in readers.items() if key in self.table}
        if values.get("fullgraph") and (target := values.get("target", "compile")) != "compile":
            raise self.fail(f'is about torch.compile, and target is "{target}": remove one of the two', "fullgraph")
        return Settings(root=self.root, config_file=self.path, **values)  # type: ignore[arg-type]

    def fail(self, message: str, key: str, word: str | None = None) -> ConfigError:
        return ConfigError(message, path=self.path, line=self.line_of(key, word), key=key)

    def line_of(self, key: str, word: str | None = None) -> int:
        """The line that sets a key, or the one after it that has ``word`` in quotes; line 1 if neither is found."""
        name = re.escape(key.rsplit(".", 1)[-1])
        sets = re.compile(rf"\s*(\[\s*)?([\w-]+\s*\.\s*)*[\"']?{name}[\"']?\s*[\]=.]")
        table = re.compile(r"\s*\[\s*tool\s*\.\s*breakscan\s*[\].]")
        start = next((n for n, line in enumerate(self.lines) if table.match(line)), 0)
        at = next((n for n, line in enumerate(self.lines[start:], start) if sets.match(line)), start)
        if word is not None:
            quoted = (f'"{word}"', f"'{word}'")
            at = next((n for n, line in enumerate(self.lines[at:], at) if any(q in line for q in quoted)), at)
        return at + 1

    def boolean(self, key: str) -> bool:
        value = self.table[key]
        if not isinstance(value, bool):
            raise self.fail("must be true or false", key)
        return value

    def word(self, key: str, allowed: tuple[str, ...] | list[str]) -> str:
        value = self.table[key]
        if value not in allowed:
            raise self.fail(f"must be one of {', '.join(allowed)}{nearest(value, allowed)}", key)
        return str(value)

    def version(self, key: str) -> str:
        value = self.table[key]
        if isinstance(value, float):
            raise self.fail(f'must be a string: "{value}"', key)
        problem = _version_problem(value)
        if problem:
            raise self.fail(problem, key)
        return str(value)

    def strings(self, key: str, value: object, under: str | None = None) -> tuple[str, ...]:
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            raise self.fail("must be a list of strings", key, under)
        return tuple(value)

    def folders(self, key: str) -> tuple[Path, ...]:
        folders = []
        for word in self.strings(key, self.table[key]):
            folder = self.root / word
            if not folder.is_dir():
                raise self.fail(f"there is no folder {word!r} in {self.root}", key, word)
            folders.append(folder)
        return tuple(folders)

    def folder_to_be(self, key: str) -> Path:
        value = self.table[key]
        if not isinstance(value, str) or not value.strip() or "\0" in value:
            raise self.fail("must be the path of a folder, as a string", key)
        return _folder(value, self.root)

    def selectors(self, key: str) -> tuple[str, ...]:
        return self.known_selectors(key, self.table[key])

    def known_selectors(self, key: str, value: object, under: str | None = None) -> tuple[str, ...]:
        words = self.strings(key, value, under)
        library = load_library(self.folders("rules") if "rules" in self.table else ())
        for word in words:
            if problem := _selector_problem(word, library):
                raise self.fail(problem, key, word)
        return words

    def patterns(self, key: str) -> tuple[str, ...]:
        words = self.strings(key, self.table[key])
        for word in words:
            if problem := _pattern_problem(word):
                raise self.fail(problem, key, word)
        return words

    def per_file_ignores(self, key: str) -> tuple[tuple[str, tuple[str, ...]], ...]:
        value = self.table[key]
        if not isinstance(value, dict):
            raise self.fail('must be a table of lists, such as "tests/*" = ["BRK2"]', key)
        entries = []
        for pattern, selectors in value.items():
            if problem := _pattern_problem(pattern):
                raise self.fail(problem, key, pattern)
            entries.append((pattern, self.known_selectors(key, selectors, pattern)))
        return tuple(entries)


def _with_overrides(settings: Settings, overrides: dict[str, Any]) -> Settings:
    known = {field.name for field in fields(Settings)} - {"root", "config_file", "observations", "options"}
    if unknown := overrides.keys() - known:
        raise TypeError(f"no such setting: {', '.join(sorted(unknown))}")
    library = load_library(overrides.get("rule_folders", settings.rule_folders))
    for field in ("select", "ignore"):
        for word in overrides.get(field, ()):
            if problem := _selector_problem(word, library):
                raise ConfigError(problem, key=field)
    for pattern in overrides.get("exclude", ()):
        if problem := _pattern_problem(pattern):
            raise ConfigError(problem, key="exclude")
    if "target_torch" in overrides and (problem := _version_problem(overrides["target_torch"])):
        raise ConfigError(problem, key="target-torch")
    values = dict(overrides)
    if values.get("fullgraph") and (target := values.get("target", "compile")) != "compile":
        raise ConfigError(f"is about torch.compile: leave it out with --target {target}", key="fullgraph")
    # Each of the two options says how the code is compiled, whatever the file says of the other.
    if values.get("fullgraph"):
        values["target"] = "compile"
    elif values.get("target", "compile") != "compile":
        values["fullgraph"] = False
    if "ignore" in values and "select" not in values:
        values["ignore"] = (*settings.ignore, *values["ignore"])
    elif "select" in values:
        values.setdefault("ignore", ())
    if "exclude" in values:
        here = (_from_root(pattern, settings.root) for pattern in values["exclude"])
        values["exclude"] = (*settings.exclude, *here)
    if "cache_dir" in values:
        values["cache_dir"] = _folder(values["cache_dir"], Path.cwd())
    return replace(settings, **values, options=frozenset(overrides))


def _from_root(pattern: str, root: Path) -> str:
    """Converts an option's pattern, relative to the working directory, into one that is relative to ``root``."""
    bang, bare = ("!", pattern[1:]) if pattern.startswith("!") else ("", pattern)
    below = os.path.relpath(Path.cwd(), root).replace(os.sep, "/")
    if below == "." or below.startswith("..") or "/" not in bare.rstrip("/"):
        return pattern
    return f"{bang}/{below}/{bare.removeprefix('./').lstrip('/')}"


def _folder(path: str | Path, base: Path) -> Path:
    """The absolute form of a path that may start with ``~``."""
    return Path(os.path.abspath(base / os.path.expanduser(path)))


def _version_problem(value: object) -> str | None:
    if not isinstance(value, str) or not re.fullmatch(r"\d+\.\d+([.+a-z0-9]*)", value):
        return f'must be a torch version such as "2.13", not {value!r}'
    return None


def _pattern_problem(pattern: str) -> str | None:
    if not pattern.strip():
        return "a pattern must not be empty"
    try:
        Patterns("/", [pattern])
    except ValueError as error:
        return f"not a gitignore-style pattern: {error}"
    return None


def _selector_problem(word: str, library: Library) -> str | None:
    try:
        library.select(word)
    except ValueError as error:
        return str(error)
    return None
