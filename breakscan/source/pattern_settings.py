"""The settings that decide which files count, as the configuration holds them."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol


class PatternSettings(Protocol):
    """Gitignore-style patterns relative to a folder.  :class:`breakscan.config.Settings` is one."""

    @property
    def root(self) -> Path:
        """The folder that the patterns are relative to."""

    @property
    def exclude(self) -> tuple[str, ...]:
        """Patterns of the files that are not read."""

    @property
    def per_file_ignores(self) -> tuple[tuple[str, tuple[str, ...]], ...]:
        """A pattern, and the selectors of the rules that are off in the files that match it."""
