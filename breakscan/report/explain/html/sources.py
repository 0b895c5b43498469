"""The source text that goes into an HTML report: whole files while there is room, else what is spoken of."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from breakscan.source.source_files import SourceFiles

MOST_CHARACTERS = 5_000_000
"""Of source, in all of a report."""
LONGEST_WHOLE = 600_000
AROUND = 4
"""Lines kept before and after each mentioned line, if a file is not kept whole."""

Segment = tuple[int, str]
"""Consecutive lines: the number of the first, and their text."""


class SourceStore:
    """Gives each path a number, notes which of its lines are spoken of, and reads them in the end."""

    def __init__(self, files: SourceFiles) -> None:
        self._files = files
        self._numbers: dict[str, int] = {}
        self._lines: dict[str, set[int]] = {}
        self._marked: set[str] = set()

    def number(self, path: str, first: int, last: int, marked: bool = False) -> int:
        """The number of a path, whose lines from ``first`` to ``last`` are spoken of.  Of ``marked`` files the reader
        wants to see all."""
        self._lines.setdefault(path, set()).update(range(first, min(last, first + AROUND) + 1))
        if marked:
            self._marked.add(path)
        return self._numbers.setdefault(path, len(self._numbers))

    @property
    def numbers(self) -> dict[str, int]:
        """The number of each path, in order."""
        return self._numbers

    def segments(self) -> dict[int, list[Segment]]:
        """By the number of its path, what is kept of each file that can be read: of all of them what is spoken of,
        then as many whole ones as there is room for."""
        room = MOST_CHARACTERS
        kept: dict[int, list[Segment]] = {}
        for path, number in sorted(self._numbers.items(), key=lambda item: item[0] not in self._marked):
            segments = list(_excerpts(self._files.lines(path), self._lines[path]))
            length = _length(segments)
            if segments and length <= room:
                kept[number] = segments
                room -= length
        for path, number in self._numbers.items():
            if path not in self._marked or number not in kept:
                continue
            whole = [(1, "\n".join(self._files.lines(path)))]
            more = _length(whole) - _length(kept[number])
            if _length(whole) <= LONGEST_WHOLE and more <= room:
                kept[number] = whole
                room -= more
        return kept


def _length(segments: Iterable[Segment]) -> int:
    return sum(len(text) for _, text in segments)


def _excerpts(lines: list[str], wanted: Iterable[int]) -> Iterator[Segment]:
    start = end = 0
    for line in sorted(line for line in wanted if 1 <= line <= len(lines)):
        if end and line - AROUND <= end + 1:
            end = min(line + AROUND, len(lines))
            continue
        if end:
            yield start, "\n".join(lines[start - 1 : end])
        start, end = max(line - AROUND, 1), min(line + AROUND, len(lines))
    if end:
        yield start, "\n".join(lines[start - 1 : end])
