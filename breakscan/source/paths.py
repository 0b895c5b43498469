"""Paths in configuration and reports: gitignore-style patterns relative to a folder, and names for reports.

Also selectors, with which configurations and comments select rules, and ``per-file-ignores``, which switch them off."""

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path, PureWindowsPath
from typing import Protocol


def display_path(path: Path | str, cwd: Path | str) -> str:
    """The path relative to ``cwd`` if it is below it, else absolute; always with forward slashes."""
    absolute = os.path.abspath(os.path.join(cwd, path))
    return relative_to(absolute, str(cwd)) or absolute.replace(os.sep, "/")


def shown_path(path: str, cwd: str) -> str:
    """The path of a file of a run as reports show it.  One of another system stays absolute."""
    foreign = PureWindowsPath(path)
    if foreign.drive and not path.startswith("/"):
        return foreign.as_posix()
    return display_path(path, cwd)


def relative_to(path: str, folder: str) -> str | None:
    """The absolute ``path`` relative to ``folder``, with forward slashes, or None if it is elsewhere."""
    base = folder.rstrip(os.sep) + os.sep
    if not path.startswith(base):
        return None
    return path[len(base) :].replace(os.sep, "/")


def path_from(folder: Path | str, path: Path | str) -> str:
    """The path as seen from a folder, which it need not be below, with forward slashes; on another drive, the path."""
    try:
        return os.path.relpath(path, folder).replace(os.sep, "/")
    except ValueError:  # on another drive
        return str(path).replace(os.sep, "/")


class Patterns:
    """Gitignore-style patterns that apply below a folder.

    Raises ValueError for a pattern that gitignore does not allow."""

    def __init__(self, folder: str, lines: Sequence[str]) -> None:
        self.folder = folder
        from pathspec import GitIgnoreSpec  # slow to import, and one file that is named needs no pattern

        self._lines = tuple(lines)
        self._spec = GitIgnoreSpec.from_lines(self._lines)

    def decide(self, path: str, is_folder: bool = False) -> bool | None:
        """True if the last pattern that matches the path excludes it, False if it re-includes it (``!``),
        None if no pattern matches.  ``path`` is absolute."""
        relative = relative_to(path, self.folder) if self._lines else None
        if relative is None:
            return None
        return self._spec.check_file(relative + "/" if is_folder else relative).include

    def without_those_that_hide(self, folder: str) -> "Patterns":
        """The patterns that remain if ``folder`` is named explicitly although some of them exclude it."""
        if not self.decide(folder, True):
            return self
        kept = [line for line in self._lines if not Patterns(self.folder, [line]).decide(folder, True)]
        return Patterns(self.folder, kept)


@dataclass(frozen=True, slots=True)
class PathPattern:
    """A gitignore-style pattern, and the folder that it is relative to."""

    folder: Path
    text: str

    @property
    def is_name(self) -> bool:
        """True if it matches by name, in any folder below its own."""
        return "/" not in self.text.removeprefix("!").rstrip("/")


class PatternLayers:
    """Patterns of several folders in a row: the last one that matches decides, as within one folder.  Those of
    ``before`` come first."""

    def __init__(self, patterns: Iterable[PathPattern], before: "PatternLayers | None" = None) -> None:
        grouped = groupby(patterns, key=lambda pattern: pattern.folder)
        self._layers = [Patterns(str(folder), [one.text for one in group]) for folder, group in grouped]
        self._layers[:0] = before._layers if before is not None else ()

    def decide(self, path: str, is_folder: bool = False) -> bool | None:
        """As :meth:`Patterns.decide`."""
        decisions = (layer.decide(path, is_folder) for layer in reversed(self._layers))
        return next((decision for decision in decisions if decision is not None), None)

    def without_those_that_hide(self, folder: str) -> "PatternLayers":
        """As :meth:`Patterns.without_those_that_hide`."""
        kept = PatternLayers(())
        kept._layers = [layer.without_those_that_hide(folder) for layer in self._layers]
        return kept if self.decide(folder, True) else self


def selects(selector: str, rule: str, name: str) -> bool:
    """True if a selector selects a rule: ``ALL``, an id, the start of one (``BRK1`` is a family), or a name."""
    upper = selector.upper()
    return upper == "ALL" or (upper.startswith("BRK") and rule.startswith(upper)) or selector.lower() == name


def exactness(selector: str) -> int:
    """The specificity of a selector: if two disagree on a rule, the more specific one wins."""
    upper = selector.upper()
    if upper == "ALL":
        return 0
    return min(len(upper), len("BRK101")) if upper.startswith("BRK") else len("BRK101")


class PatternSettings(Protocol):
    """Gitignore-style patterns.  :class:`breakscan.rulebook.config.Settings` is one."""

    @property
    def root(self) -> Path: ...
    @property
    def exclude(self) -> tuple[PathPattern, ...]: ...
    @property
    def per_file_ignores(self) -> tuple[tuple[PathPattern, tuple[str, ...]], ...]: ...


class PatternSettingsOfFiles(Protocol):
    """The patterns that count for each file or folder.  :class:`breakscan.rulebook.config.FileSettings` is one."""

    def of(self, path: Path) -> PatternSettings:
        """Those for a file or folder at an absolute path, by the folder that it lies in."""


class PerFileIgnores:
    """The ``per-file-ignores`` of a run, with their patterns compiled once."""

    def __init__(self, settings: PatternSettings) -> None:
        self._entries = [(PatternLayers([pattern]), words) for pattern, words in settings.per_file_ignores]

    def covers(self, path: Path, rule: str, name: str) -> bool:
        """True if a rule, by id and name, is off in a file, given by its absolute path."""
        off = (words for pattern, words in self._entries if pattern.decide(str(path)))
        return any(selects(word, rule, name) for words in off for word in words)
