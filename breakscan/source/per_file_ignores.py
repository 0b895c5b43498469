"""``per-file-ignores``: rules that are off in the files that a pattern names."""

from __future__ import annotations

from pathlib import Path

from breakscan.source.paths import PatternLayers
from breakscan.source.pattern_settings import PatternSettings
from breakscan.source.selectors import selects


class PerFileIgnores:
    """The ``per-file-ignores`` of a run, with their patterns compiled once."""

    def __init__(self, settings: PatternSettings) -> None:
        self._entries = [(PatternLayers([pattern]), words) for pattern, words in settings.per_file_ignores]

    def selectors(self, path: Path) -> tuple[str, ...]:
        """The selectors that are off in a file, given by its absolute path."""
        text = str(path)
        return tuple(word for pattern, words in self._entries if pattern.decide(text) for word in words)

    def covers(self, path: Path, rule: str, name: str) -> bool:
        """Whether a rule, by id and name, is off in a file."""
        return any(selects(word, rule, name) for word in self.selectors(path))
