"""The settings that a file is checked under, from the nearest configuration file (``breakscan.toml``, or
``[tool.breakscan]`` of a ``pyproject.toml``) and the command line, and the torch version that is checked for."""

import importlib.util
import os
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from functools import partial
from pathlib import Path
from typing import Any, Literal, Protocol

from breakscan.model.findings import CheckTarget, Confidence, Mode
from breakscan.model.observations import Observations
from breakscan.model.torch_versions import (
    NESTED,
    NESTED_FROM,
    has_compiler,
    is_version,
    minor_version,
    supported_range,
    target_version,
    version_key,
)
from breakscan.model.words import InputError
from breakscan.rulebook.document import nearest
from breakscan.rulebook.ledger import ledger_version_for, measured_versions
from breakscan.rulebook.library import Library, load_library
from breakscan.source.paths import PathPattern, Patterns, exactness, selects
from breakscan.source.toml_text import TomlProblem, parse_toml


class ConfigError(InputError):
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
class _Place:
    """The place of a key's value: paths are relative to ``folder``, and ``library()`` has the rules.  ``fail(message,
    word)`` makes an error that names the option, or the file, the key, and its line, or that of ``word`` after it."""

    folder: Path
    library: Callable[[], Library]
    fail: Callable[..., ConfigError]


Reader = Callable[[Any, _Place], object]
"""Returns the value of a key as settings have it.  Raises ConfigError for a wrong one."""


@dataclass(frozen=True, slots=True)
class Key:
    """A key of a configuration file, as ``breakscan/schemas/config.schema.json`` describes it.  ``adds`` says that the
    value of an option adds to that of the file."""

    name: str
    read: Reader
    adds: bool = False


def _boolean(value: Any, at: _Place) -> bool:
    if not isinstance(value, bool):
        raise at.fail("must be true or false")
    return value


def _one_of(words: tuple[str, ...], value: Any, at: _Place, convert: Callable[[str], object] = str) -> object:
    if value not in words:
        raise at.fail(f"must be one of {', '.join(words)}{nearest(value, words)}")
    return convert(str(value))


_VERSION = re.compile(r"\d{1,9}\.\d{1,9}([.+a-z0-9]*)", re.ASCII)


def _torch_version(value: Any, at: _Place) -> str:
    if isinstance(value, float):
        raise at.fail(f'must be a string: "{value}"')
    if not isinstance(value, str) or not _VERSION.fullmatch(value):
        raise at.fail(f'must be a torch version such as "2.13", not {value!r}')
    if not has_compiler(value):
        raise at.fail(f"torch {value} has no torch.compile, which came with 2.0; verdicts are of {supported_range()}")
    if value.endswith(NESTED) and version_key(value) < version_key(NESTED_FROM):
        raise at.fail(f"verdicts with nested_graph_breaks are of torch {NESTED_FROM} and newer, not {value!r}")
    return value


def _path_of(what: str, value: Any, at: _Place) -> Path:
    """Reads the path of a file or a folder that need not exist."""
    if not isinstance(value, str) or not value.strip() or "\0" in value:
        raise at.fail(f"must be the path of a {what}, as a string")
    return _absolute(value, at.folder)


def _folders(value: Any, at: _Place) -> tuple[Path, ...]:
    """Reads folders that exist."""
    folders = []
    for word in _strings(value, at):
        folder = _absolute(word, at.folder) if "\0" not in word else at.folder / "\ufffd"
        if not folder.is_dir():
            raise at.fail(f"there is no folder {word!r} in {at.folder}", word)
        folders.append(folder)
    return tuple(folders)


def _selectors(value: Any, at: _Place, under: str | None = None) -> tuple[str, ...]:
    """Reads words that select rules; ``under`` is the key of a value in a table."""
    words = _strings(value, at, under)
    for word in words:
        if problem := at.library().problem_with(word):
            raise at.fail(problem, word)
    return words


def _patterns(value: Any, at: _Place) -> tuple[PathPattern, ...]:
    """Reads gitignore-style patterns."""
    patterns = []
    for pattern in _strings(value, at):
        if not pattern.strip():
            raise at.fail("a pattern must not be empty", pattern)
        try:
            Patterns("/", [pattern])
        except ValueError as error:
            raise at.fail(f"not a gitignore-style pattern: {error}", pattern) from error
        patterns.append(PathPattern(at.folder, pattern))
    return tuple(patterns)


def _selectors_by_pattern(value: Any, at: _Place) -> tuple[tuple[PathPattern, tuple[str, ...]], ...]:
    if not isinstance(value, dict):
        raise at.fail('must be a table of lists, such as "tests/*" = ["BRK2"]')
    words = (_selectors(words, at, pattern) for pattern, words in value.items())
    return tuple(zip(_patterns(list(value), at), words, strict=True))


def _strings(value: Any, at: _Place, under: str | None = None) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise at.fail("must be a list of strings", under)
    return tuple(value)


def _absolute(path: str, base: Path) -> Path:
    """The absolute form of a path that may start with ``~``."""
    return Path(os.path.abspath(base / os.path.expanduser(path)))


Regions = Literal["auto", "roots", "modules", "all"]
REGIONS = ("auto", "roots", "modules", "all")
Way = Literal["compile", "export", "export-strict"]
WAYS = ("compile", "export", "export-strict")
CONFIDENCES = tuple(one.value for one in Confidence)
_confidence = partial(_one_of, CONFIDENCES, convert=Confidence)
CACHE_FOLDER = ".breakscan_cache"


def _key(name: str, read: Reader, *, adds: bool = False) -> dict[str, Key]:
    """The metadata of a field that can stand in a file."""
    return {"key": Key(name, read, adds)}


class FileSettings(Protocol):
    """The settings of each file: the same for all (:class:`Settings`), or those nearest to each
    (:class:`.NearestSettings`)."""

    def of(self, path: Path) -> "Settings":
        """The settings of a file or folder at an absolute path, by the folder that it lies in."""

    def changed(self, **values: Any) -> "FileSettings":
        """The same settings, but with these values for all files."""


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings of one file or more.  ``root`` is the folder of the configuration file, ``options`` names the
    settings that came from the command line; ``observations`` is what recorded runs showed of values."""

    root: Path
    config_file: Path | None = None
    target_torch: str | None = field(default=None, metadata=_key("target-torch", _torch_version))
    target: Way = field(default="compile", metadata=_key("target", partial(_one_of, WAYS)))
    fullgraph: bool = field(default=False, metadata=_key("fullgraph", _boolean))
    regions: Regions = field(default="auto", metadata=_key("regions", partial(_one_of, REGIONS)))
    confidence: Confidence = field(default=Confidence.CONDITIONAL, metadata=_key("confidence", _confidence))
    select: tuple[str, ...] = field(default=("ALL",), metadata=_key("select", _selectors))
    ignore: tuple[str, ...] = field(default=(), metadata=_key("ignore", _selectors, adds=True))
    per_file_ignores: tuple[tuple[PathPattern, tuple[str, ...]], ...] = field(
        default=(), metadata=_key("per-file-ignores", _selectors_by_pattern)
    )
    exclude: tuple[PathPattern, ...] = field(default=(), metadata=_key("exclude", _patterns, adds=True))
    rule_folders: tuple[Path, ...] = field(default=(), metadata=_key("rules", _folders))
    baseline: Path | None = field(default=None, metadata=_key("baseline", partial(_path_of, "file")))
    cache_dir: Path | None = field(default=None, metadata=_key("cache-dir", partial(_path_of, "folder")))
    no_cache: bool = False
    observations: Observations | None = None
    options: frozenset[str] = frozenset()

    def of(self, path: Path) -> "Settings":
        return self

    def changed(self, **values: Any) -> "Settings":
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

    @property
    def library(self) -> Library:
        """The shipped rules and those of ``rule_folders``.  Raises RuleError."""
        return load_library(self.rule_folders)


KEYS: Mapping[str, Key] = {one.name: one.metadata["key"] for one in fields(Settings) if "key" in one.metadata}
"""The keys of configuration files, by the field that each sets."""


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
    """The torch version to check for: the configured one, else the installed one, by its ``version.py``, or the newest
    measured.  Raises ConfigError if the installation of breakscan has no verdicts at all."""
    measured = measured_versions()
    if not measured:
        raise ConfigError("breakscan's verdict ledgers are missing: reinstall breakscan")
    if settings.target_torch is not None:
        source: Literal["config", "option"] = "option" if "target_torch" in settings.options else "config"
        torch = target_version(settings.target_torch)
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
    targets = ((resolve_target(one), one.mode) for one in settings)
    return tuple(dict.fromkeys(CheckTarget(target.torch, target.ledger, mode) for target, mode in targets))


OWN_FILE = "breakscan.toml"
SHARED_FILE = "pyproject.toml"
TABLE = "tool.breakscan"
CACHE_VARIABLE = "BREAKSCAN_CACHE_DIR"


def _load(path: Path) -> tuple[str, dict[str, Any]]:
    """The text of a file, and its values.  Raises ConfigError."""
    try:
        text = path.read_text(encoding="utf-8")
        return text, parse_toml(text)
    except OSError as error:
        raise ConfigError(f"cannot be read: {error.strerror}", path=path) from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"cannot be read: {error}", path=path) from error
    except TomlProblem as problem:
        raise ConfigError(str(problem), path=path, line=problem.line or 1) from problem


def _holds_configuration(path: Path) -> bool:
    """True if this is a file with keys of ours.  Raises ConfigError if it cannot be read."""
    if path.name == OWN_FILE or not path.is_file():
        return path.is_file()
    try:
        # A file that does not name us is none of our business, even if it is no TOML.
        is_ours = b"breakscan" in path.read_bytes()
    except OSError as error:
        raise ConfigError(f"cannot be read: {error.strerror}", path=path) from error
    return is_ours and _shared_table(_load(path)[1]) is not None


def _shared_table(data: Mapping[str, Any]) -> object:
    tool = data.get("tool")
    return tool.get("breakscan") if isinstance(tool, dict) else None


def _read_file(path: Path) -> dict[str, Any]:
    """The values of a configuration file at an absolute path, by field.  Its keys are at the top level, or in the table
    that it shares with other tools' tables."""
    text, data = _load(path)

    def fail(key: str, message: str, word: str | None = None) -> ConfigError:
        return ConfigError(message, path=path, line=_line_of(text.splitlines(), key, word), key=key)

    table = data if path.name == OWN_FILE else _shared_table(data)
    if table is None and (path.name == SHARED_FILE or "tool" in data):
        raise ConfigError(f"has no [{TABLE}] table", path=path)
    table = data if table is None else table
    if not isinstance(table, dict):
        raise fail(TABLE, "must be a table")
    names = {key.name: name for name, key in KEYS.items()}
    for key in (one for one in table if one not in names):
        if path.name == OWN_FILE and key == "tool" and _shared_table(table) is not None:
            raise fail(TABLE, f"remove the line [{TABLE}]: the keys of {OWN_FILE} are at the top level")
        hint = nearest(key.replace("_", "-").lower(), names) or f" (known: {', '.join(names)})"
        raise fail(key, f"unknown key{hint}")
    return _values({names[key]: value for key, value in table.items()}, path.parent, fail)


def _values(
    given: Mapping[str, Any], folder: Path, fail: Callable[..., ConfigError], rules: tuple[Path, ...] = ()
) -> dict[str, Any]:
    """The settings of some values, by field.  ``fail`` makes an error of a key, a message, and maybe a word."""
    values: dict[str, Any] = {}
    for name in sorted(given, key=lambda one: one != "rule_folders"):  # selectors name rules
        key, library = KEYS[name], partial(load_library, values.get("rule_folders", rules))
        values[name] = key.read(given[name], _Place(folder, library, partial(fail, key.name)))
    if values.get("fullgraph") and (target := values.get("target", "compile")) != "compile":
        raise fail("fullgraph", f"is about torch.compile, and the target is {target}: leave one of the two out")
    return values


def _line_of(lines: list[str], key: str, word: str | None) -> int:
    """The line that sets a key, or the one after it that has ``word`` in quotes; line 1 if neither is found."""
    name = re.escape(key.rsplit(".", 1)[-1])
    sets = re.compile(rf"\s*(\[\s*)?([\w-]+\s*\.\s*)*[\"']?{name}[\"']?\s*[\]=.]")
    table = re.compile(r"\s*\[\s*tool\s*\.\s*breakscan\s*[\].]")
    start = next((n for n, line in enumerate(lines) if table.match(line)), 0)
    at = next((n for n, line in enumerate(lines[start:], start) if sets.match(line)), start)
    if word is not None:
        quoted = (f'"{word}"', f"'{word}'")
        at = next((n for n, line in enumerate(lines[at:], at) if any(q in line for q in quoted)), at)
    return at + 1


class NearestSettings:
    """The settings of each file: those of the nearest configuration, upwards from its folder, else from the working
    directory; or of the file ``config`` for all.

    ``overrides`` are values from the command line, by field, as files have them; None leaves a setting as it is.  Paths
    and patterns are relative to the working directory.  A ``select`` also drops what the file ignores; ``target`` and
    ``fullgraph`` each replace both.  ``BREAKSCAN_CACHE_DIR`` replaces the ``cache-dir`` of files.  When settings are
    read, raises ConfigError for a wrong key, value or file, and RuleError for a malformed rule of the user."""

    def __init__(self, config: Path | None = None, **overrides: Any) -> None:
        if unknown := overrides.keys() - {*KEYS, "no_cache"}:
            raise TypeError(f"no such setting: {', '.join(sorted(unknown))}")
        self._config = Path(os.path.abspath(config)) if config else None
        self._overrides = {name: value for name, value in overrides.items() if value is not None}
        self._changes: dict[str, Any] = {}
        self._cwd = Path.cwd()
        self._found: dict[Path, Path | None] = {}
        """The nearest configuration file, by folder."""
        self._settings: dict[Path | None, Settings] = {}
        """By configuration file: files of one configuration share their settings."""

    def of(self, path: Path) -> Settings:
        return self.in_folder(path.parent)

    def in_folder(self, folder: Path) -> Settings:
        """The settings of the files in a folder at an absolute path."""
        found = self._config or self._nearest(folder) or self._nearest(self._cwd)
        if found not in self._settings:
            self._settings[found] = replace(self._read(found), **self._changes)
        return self._settings[found]

    def changed(self, **values: Any) -> "NearestSettings":
        other = NearestSettings(self._config, **self._overrides)
        other._changes = {**self._changes, **values}
        other._found = self._found
        return other

    def _nearest(self, folder: Path) -> Path | None:
        if folder not in self._found:
            here = (folder / name for name in (OWN_FILE, SHARED_FILE))
            own = next((path for path in here if _holds_configuration(path)), None)
            is_top = folder.parent == folder
            self._found[folder] = own or (None if is_top else self._nearest(folder.parent))
        return self._found[folder]

    def _read(self, path: Path | None) -> Settings:
        values = _read_file(path) if path else {}
        root = path.parent if path else self._cwd
        if from_environment := os.environ.get(CACHE_VARIABLE):
            values["cache_dir"] = _absolute(from_environment, self._cwd)
        options = self._option_values(root, values.get("rule_folders", ()))
        if options.get("fullgraph"):
            values["target"] = "compile"
        elif options.get("target", "compile") != "compile":
            values["fullgraph"] = False
        if "select" in options:
            values.pop("ignore", None)
        for name, value in options.items():
            adds = name in KEYS and KEYS[name].adds
            values[name] = (*values.get(name, ()), *value) if adds else value
        return Settings(root=root, config_file=path, **values, options=frozenset(self._overrides))

    def _option_values(self, root: Path, rule_folders: tuple[Path, ...]) -> dict[str, Any]:
        """The settings of the command line.  Raises ConfigError for wrong values."""
        others = {name: value for name, value in self._overrides.items() if name not in KEYS}
        given = {
            name: list(value) if isinstance(value, tuple) else str(value) if isinstance(value, Path) else value
            for name, value in self._overrides.items()
            if name in KEYS
        }
        values = _values(given, self._cwd, lambda key, why, _=None: ConfigError(why, key=key), rule_folders) | others
        if "exclude" in values:
            values["exclude"] = tuple(_as_typed(one, root) for one in values["exclude"])
        return values


def _as_typed(pattern: PathPattern, root: Path) -> PathPattern:
    """A pattern of the command line.  A shell completes ``./models``, which a file would call ``/models``.  One that
    names no folder applies wherever it stands."""
    bang, bare = ("!", pattern.text[1:]) if pattern.text.startswith("!") else ("", pattern.text)
    text = f"{bang}{bare[1:]}" if bare.startswith("./") else pattern.text
    typed = replace(pattern, text=text)
    return replace(typed, folder=root) if typed.is_name else typed


def load_settings(folder: Path, config: Path | None = None, **overrides: Any) -> Settings:
    """The settings of the files in a folder: see :class:`NearestSettings`."""
    return NearestSettings(config, **overrides).in_folder(Path(os.path.abspath(folder)))
