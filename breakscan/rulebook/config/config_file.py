"""Reads configuration files: ``breakscan.toml``, and ``[tool.breakscan]`` of a ``pyproject.toml``."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from functools import partial
from pathlib import Path
from typing import Any

from breakscan.rulebook.config.keys import (
    ConfigError,
    Key,
    KeyPlace,
    absolute,
    pattern_problem,
    selector_problem,
    version_problem,
)
from breakscan.rulebook.config.settings import KEY, Settings
from breakscan.rulebook.document import nearest
from breakscan.rulebook.library import load_library
from breakscan.source.paths import PathPattern
from breakscan.source.toml_text import TomlProblem, parse_toml

KEYS: Mapping[str, Key] = {one.name: one.metadata[KEY] for one in fields(Settings) if KEY in one.metadata}
"""The keys of configuration files, by the field that each sets."""


def joined(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """The values of both, by field: those of ``above`` replace those of ``below`` or add to them, as their keys say.
    A ``select`` also drops what ``below`` ignores; ``target`` and ``fullgraph`` say both how code is compiled, so each
    replaces both."""
    values = dict(below)
    if above.get("fullgraph"):
        values["target"] = "compile"
    elif above.get("target", "compile") != "compile":
        values["fullgraph"] = False
    if "select" in above:
        values.pop("ignore", None)
    for name, value in above.items():
        adds = name in KEYS and KEYS[name].adds
        values[name] = (*values.get(name, ()), *value) if adds else value
    return values


OWN_FILE = "breakscan.toml"
SHARED_FILE = "pyproject.toml"
EXTEND = "extend"
TABLE = "tool.breakscan"


@dataclass(frozen=True, slots=True)
class FileValues:
    """The values of a configuration file and of those that it extends, by field.  ``origins`` has each field with the
    file that set it; one that several files add to is there more than once."""

    values: dict[str, Any]
    origins: tuple[tuple[str, Path], ...]


def holds_configuration(path: Path) -> bool:
    """True if this is a file with keys of ours.  Raises ConfigError if it cannot be read."""
    if not path.is_file():
        return False
    if path.name == OWN_FILE:
        return True
    # A file that does not name us is none of our business, even if it is no TOML.
    return b"breakscan" in _content(path) and _shared_table(_load(path)) is not None


def read_config_file(path: Path) -> FileValues:
    """The values of a file at an absolute path.  Raises ConfigError for a wrong key or value, RuleError for a malformed
    rule of the user."""
    return _read(path, ())


def _read(path: Path, extending: tuple[Path, ...]) -> FileValues:
    file = _ConfigFile(path)
    base = FileValues({}, ())
    if EXTEND in file.table:
        base = _read(file.extended((*extending, path)), (*extending, path))
    values = file.values(base.values.get("rule_folders", ()))
    kept = [(name, origin) for name, origin in base.origins if name not in values or KEYS[name].adds]
    if "select" in values:
        kept = [(name, origin) for name, origin in kept if name != "ignore"]
    return FileValues(joined(base.values, values), (*kept, *((name, path) for name in values)))


def _load(path: Path) -> dict[str, Any]:
    try:
        return parse_toml(_text(path))
    except TomlProblem as problem:
        raise ConfigError(str(problem), path=path, line=problem.line or 1) from problem


def _text(path: Path) -> str:
    try:
        return _content(path).decode("utf-8")
    except UnicodeDecodeError as error:
        raise ConfigError(f"cannot be read: {error}", path=path) from error


def _content(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise ConfigError(f"cannot be read: {error.strerror}", path=path) from error


def _shared_table(data: Mapping[str, Any]) -> object:
    tool = data.get("tool")
    return tool.get("breakscan") if isinstance(tool, dict) else None


class _ConfigFile:
    """One file.  Its keys are at the top level, or in the table that it shares with other tools' tables."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.folder = path.parent
        data = _load(path)
        self.lines = _text(path).splitlines()
        table = data if path.name == OWN_FILE else _shared_table(data)
        if table is None and (path.name == SHARED_FILE or "tool" in data):
            raise ConfigError(f"has no [{TABLE}] table", path=path)
        if table is None:
            table = data
        if not isinstance(table, dict):
            raise ConfigError("must be a table", path=path, line=self.line_of(TABLE), key=TABLE)
        self.table: dict[str, Any] = table

    def extended(self, extending: tuple[Path, ...]) -> Path:
        """The file that this one extends; ``extending`` are those on the way to it, this one last."""
        value = self.table[EXTEND]
        at = self.place(EXTEND)
        if not isinstance(value, str) or not value.strip() or "\0" in value:
            raise at.fail("must be the path of a configuration file, as a string")
        path = absolute(value, self.folder)
        if path in extending:
            circle = " extends ".join(str(one) for one in (*extending[extending.index(path) :], path))
            raise at.fail(f"the files extend one another: {circle}. Remove one of these lines")
        if not path.is_file():
            what = "is a folder: name the file in it" if path.is_dir() else "does not exist"
            raise at.fail(f"{path} {what}. The path is relative to the folder of this file")
        if path.name == SHARED_FILE and _shared_table(_load(path)) is None:
            raise at.fail(f"{path} has no [{TABLE}] table: add one there, or name another file")
        return path

    def values(self, rule_folders: tuple[Path, ...]) -> dict[str, Any]:
        """The values of the file itself; ``rule_folders`` are those of the files that it extends."""
        fields = {key.name: name for name, key in KEYS.items()}
        for key in self.table:
            if key == EXTEND or key in fields:
                continue
            if self.path.name == OWN_FILE and key == "tool" and _shared_table(self.table) is not None:
                raise self.fail(f"remove the line [{TABLE}]: the keys of {OWN_FILE} are at the top level", TABLE)
            known = (EXTEND, *fields)
            hint = nearest(key.replace("_", "-").lower(), known) or f" (known: {', '.join(known)})"
            raise self.fail(f"unknown key{hint}", key)
        values: dict[str, Any] = {}
        for key, name in sorted(fields.items(), key=lambda one: one[1] != "rule_folders"):  # selectors name rules
            if key in self.table:
                at = self.place(key, (*rule_folders, *values.get("rule_folders", ())))
                values[name] = KEYS[name].read(self.table[key], at)
        if values.get("fullgraph") and (target := values.get("target", "compile")) != "compile":
            raise self.fail(f'is about torch.compile, and target is "{target}": remove one of the two', "fullgraph")
        return values

    def place(self, key: str, rule_folders: tuple[Path, ...] = ()) -> KeyPlace:
        """The place of a key; ``rule_folders`` has the user's rules that selectors can name there."""

        def fail(message: str, word: str | None = None) -> ConfigError:
            return self.fail(message, key, word)

        return KeyPlace(self.folder, partial(load_library, rule_folders), fail)

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


CACHE_VARIABLE = "BREAKSCAN_CACHE_DIR"


class NearestSettings:
    """The settings of each file: those of the nearest configuration, upwards from its folder, else from the working
    directory; or of the file ``config`` for all.

    ``overrides`` are values from the command line, by field; None leaves a setting as it is.  They go over those of
    files as a file goes over the one that it extends (see :func:`.joined`).  ``exclude`` is a tuple of strings there,
    relative to the working directory.  The environment's ``BREAKSCAN_CACHE_DIR`` replaces the ``cache-dir`` of files.

    Raises, when settings are read, ConfigError for a wrong key, value or file, and RuleError for a malformed rule
    of the user.
    """

    def __init__(self, config: Path | None = None, **overrides: Any) -> None:
        known = {field.name for field in fields(Settings)} - {"root", "config_file", "observations", "options"}
        if unknown := overrides.keys() - known:
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
        """The settings of a file or folder at an absolute path, by the folder that it lies in."""
        return self.in_folder(path.parent)

    def in_folder(self, folder: Path) -> Settings:
        """The settings of the files in a folder at an absolute path."""
        found = self._config or self._nearest(folder) or self._nearest(self._cwd)
        if found not in self._settings:
            self._settings[found] = replace(self._read(found), **self._changes)
        return self._settings[found]

    def changed(self, **values: Any) -> NearestSettings:
        """The same settings, but with these values for all files."""
        other = NearestSettings(self._config, **self._overrides)
        other._changes = {**self._changes, **values}
        other._found = self._found
        return other

    def _nearest(self, folder: Path) -> Path | None:
        passed: list[Path] = []
        found = None
        for one in (folder, *folder.parents):
            if one in self._found:
                found = self._found[one]
                break
            passed.append(one)
            here = (one / name for name in (OWN_FILE, SHARED_FILE))
            found = next((path for path in here if holds_configuration(path)), None)
            if found is not None:
                break
        self._found |= dict.fromkeys(passed, found)
        return found

    def _read(self, path: Path | None) -> Settings:
        if path is None:
            values: dict[str, Any] = {}
            settings = Settings(root=self._cwd)
        else:
            read = read_config_file(path)
            values = read.values
            settings = Settings(root=path.parent, config_file=path, origins=read.origins)
        if from_environment := os.environ.get(CACHE_VARIABLE):
            values["cache_dir"] = absolute(from_environment, self._cwd)
            kept = tuple(one for one in settings.origins if one[0] != "cache_dir")
            settings = replace(settings, origins=kept)
        values = joined(values, self._option_values(values.get("rule_folders", ())))
        for name in ("exclude", "per_file_ignores"):
            if name in values:
                values[name] = tuple(_anchored(one, settings.root) for one in values[name])
        return replace(settings, **values, options=frozenset(self._overrides))

    def _option_values(self, rule_folders: tuple[Path, ...]) -> dict[str, Any]:
        """The settings of the command line.  Raises ConfigError for wrong values."""
        values = dict(self._overrides)
        library = load_library((*rule_folders, *values.get("rule_folders", ())))
        for name in ("select", "ignore"):
            for word in values.get(name, ()):
                if problem := selector_problem(word, library):
                    raise ConfigError(problem, key=name)
        for pattern in values.get("exclude", ()):
            if problem := pattern_problem(pattern):
                raise ConfigError(problem, key="exclude")
        if "target_torch" in values and (problem := version_problem(values["target_torch"])):
            raise ConfigError(problem, key=KEYS["target_torch"].name)
        if values.get("fullgraph") and (target := values.get("target", "compile")) != "compile":
            raise ConfigError(f"is about torch.compile: leave it out with --target {target}", key="fullgraph")
        if "exclude" in values:
            values["exclude"] = tuple(PathPattern(self._cwd, _typed(one)) for one in values["exclude"])
        if "cache_dir" in values:
            values["cache_dir"] = absolute(values["cache_dir"], self._cwd)
        return values


def load_settings(folder: Path, config: Path | None = None, **overrides: Any) -> Settings:
    """The settings of the files in a folder: see :class:`NearestSettings`."""
    return NearestSettings(config, **overrides).in_folder(Path(os.path.abspath(folder)))


def _typed(pattern: str) -> str:
    """A pattern as a shell completes a path: ``./models`` is what a file would call ``/models``."""
    bang, bare = ("!", pattern[1:]) if pattern.startswith("!") else ("", pattern)
    return f"{bang}{bare[1:]}" if bare.startswith("./") else pattern


def _anchored(entry: Any, root: Path) -> Any:
    """A pattern that names no folder applies wherever it stands: it is no path that would be relative to its file."""
    if isinstance(entry, tuple):
        pattern, selectors = entry
        return _anchored(pattern, root), selectors
    return replace(entry, folder=root) if entry.is_name else entry
