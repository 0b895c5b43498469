"""The settings that decide which files count, as the configuration holds them."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

from breakscan.source.paths import PathPattern


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
