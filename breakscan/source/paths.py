"""Paths in configuration and reports: gitignore-style patterns relative to a folder, and names for reports."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path, PureWindowsPath


def display_path(path: Path | str, cwd: Path | str) -> str:
    """The path relative to ``cwd`` if it is below it, else absolute; always with forward slashes."""
    absolute = os.path.abspath(os.path.join(cwd, path))
    base = str(cwd).rstrip(os.sep) + os.sep
    shown = absolute[len(base) :] if absolute.startswith(base) else absolute
    return shown.replace(os.sep, "/") if os.sep != "/" else shown


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
    rest = path[len(base) :]
    return rest.replace(os.sep, "/") if os.sep != "/" else rest


class Patterns:
    """Gitignore-style patterns that apply below a folder.

    Raises ValueError for a pattern that gitignore does not allow.
    """

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

    def without_those_that_hide(self, folder: str) -> Patterns:
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
    """Patterns of several folders in a row: the last one that matches decides, as within one folder."""

    def __init__(self, patterns: Iterable[PathPattern]) -> None:
        grouped = groupby(patterns, key=lambda pattern: pattern.folder)
        self._layers = [Patterns(str(folder), [one.text for one in group]) for folder, group in grouped]

    def decide(self, path: str, is_folder: bool = False) -> bool | None:
        """As :meth:`Patterns.decide`."""
        decisions = (layer.decide(path, is_folder) for layer in reversed(self._layers))
        return next((decision for decision in decisions if decision is not None), None)

    def without_those_that_hide(self, folder: str) -> PatternLayers:
        """As :meth:`Patterns.without_those_that_hide`."""
        kept = PatternLayers(())
        kept._layers = [layer.without_those_that_hide(folder) for layer in self._layers]
        return kept if self.decide(folder, True) else self
