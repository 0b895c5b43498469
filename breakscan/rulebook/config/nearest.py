"""The configuration of a file: the nearest one, with the options of the command line over it."""

from __future__ import annotations

import os
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from breakscan.rulebook.config.config_file import (
    KEYS,
    OWN_FILE,
    SHARED_FILE,
    holds_configuration,
    joined,
    read_config_file,
)
from breakscan.rulebook.config.keys import ConfigError, absolute, pattern_problem, selector_problem, version_problem
from breakscan.rulebook.config.settings import Settings
from breakscan.rulebook.library import load_library
from breakscan.source.paths import PathPattern

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
