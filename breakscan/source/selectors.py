"""Selectors, with which configurations and comments select rules, and ``per-file-ignores``, which switch them off."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

from breakscan.source.paths import PathPattern, PatternLayers


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
    def root(self) -> Path:
        """The folder of the configuration."""

    @property
    def exclude(self) -> tuple[PathPattern, ...]:
        """Patterns of the files that are not read."""

    @property
    def per_file_ignores(self) -> tuple[tuple[PathPattern, tuple[str, ...]], ...]:
        """A pattern, and the selectors of the rules that are off in the files that match it."""


class PatternSettingsOfFiles(Protocol):
    """The patterns that count for each file or folder.  :class:`breakscan.rulebook.config.FileSettings` is one."""

    def of(self, path: Path) -> PatternSettings:
        """Those for a file or folder at an absolute path, by the folder that it lies in."""


class PerFileIgnores:
    """The ``per-file-ignores`` of a run, with their patterns compiled once."""

    def __init__(self, settings: PatternSettings) -> None:
        self._entries = [(PatternLayers([pattern]), words) for pattern, words in settings.per_file_ignores]

    def selectors(self, path: Path) -> tuple[str, ...]:
        """The selectors that are off in a file, given by its absolute path."""
        text = str(path)
        return tuple(word for pattern, words in self._entries if pattern.decide(text) for word in words)

    def covers(self, path: Path, rule: str, name: str) -> bool:
        """True if a rule, by id and name, is off in a file."""
        return any(selects(word, rule, name) for word in self.selectors(path))
