"""Edits of texts, by lines."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from difflib import SequenceMatcher


@dataclass(frozen=True, slots=True)
class LineEdit:
    """Lines of a text, from ``first`` (from 0) up to ``last``, that are replaced by ``lines``."""

    first: int
    last: int
    lines: tuple[str, ...]


def line_edits(before: str, after: str) -> Iterator[LineEdit]:
    """What turns one text into the other."""
    old, new = before.split("\n"), after.split("\n")
    for tag, first, last, start, end in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if tag != "equal":
            yield LineEdit(first, last, tuple(new[start:end]))
