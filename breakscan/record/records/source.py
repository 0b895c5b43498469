"""Places in the source that a run executed."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class StackFrame:
    """A place in a stack.  Lines count from 1; columns are UTF-8 bytes and count from 0, as CPython has them;
    None where torch or Python does not say."""

    path: str
    line: int
    name: str
    column: int | None = None
    end_column: int | None = None


@dataclass(frozen=True, slots=True)
class Code:
    """A code object: its file, its first line, its name."""

    path: str
    line: int
    name: str


@dataclass(frozen=True, slots=True)
class CodeLine:
    """A line that a graph was traced from, and its text at that time: a graph out of a cache was traced earlier."""

    place: StackFrame
    code: str
