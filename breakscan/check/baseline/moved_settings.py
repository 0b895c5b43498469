"""The settings of files for copies of them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from breakscan.rulebook.config import FileSettings, Settings
from breakscan.source.paths import PathPattern


class MovedSettings:
    """The settings of a file below ``copy`` are those of the same file below ``root``, without a cache."""

    def __init__(self, settings: FileSettings, root: Path, copy: Path) -> None:
        self._settings, self._root, self._copy = settings, root, copy
        self._known: dict[int, tuple[Settings, Settings]] = {}
        """Those that were moved, by their ids, each with what it became: files of one configuration share theirs."""

    def of(self, path: Path) -> Settings:
        """See :class:`.FileSettings`."""
        if not path.is_relative_to(self._copy):
            return self._settings.of(path)
        own = self._settings.of(self._root / path.relative_to(self._copy))
        if id(own) not in self._known:
            self._known[id(own)] = own, self._of_copy(own)
        return self._known[id(own)][1]

    def changed(self, **values: Any) -> MovedSettings:
        """See :class:`.FileSettings`."""
        return MovedSettings(self._settings.changed(**values), self._root, self._copy)

    def _of_copy(self, own: Settings) -> Settings:
        return replace(
            own,
            root=self._moved(own.root),
            exclude=tuple(map(self._pattern, own.exclude)),
            per_file_ignores=tuple((self._pattern(pattern), words) for pattern, words in own.per_file_ignores),
            no_cache=True,
        )

    def _pattern(self, pattern: PathPattern) -> PathPattern:
        return replace(pattern, folder=self._moved(pattern.folder))

    def _moved(self, folder: Path) -> Path:
        return self._copy / folder.relative_to(self._root) if folder.is_relative_to(self._root) else folder
