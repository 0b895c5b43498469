"""The lines of the program that a backward pass, which compiled autograd captured, is for."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from breakscan.explanation.context import Owners
from breakscan.recording.parsers.frames import BACKWARD, is_captured_backward, is_written_by_fx
from breakscan.recording.records import Code, CompileStarted, Record, StackFrame, mapped


def with_backward_lines(records: Iterable[Record], owners: Owners) -> list[Record]:
    """The records of a process, in which each place in a captured backward is the line that called it."""
    every = list(records)
    lines: dict[str, StackFrame] = {}
    for record in every:
        if isinstance(record, CompileStarted) and is_captured_backward(record.compile_id):
            line = _users_line(record.stack, owners)
            if line is not None and is_written_by_fx(record.code.path):
                lines.setdefault(record.code.path, line)

    def place(value: Any) -> Any:
        line = lines.get(value.path) if isinstance(value, StackFrame | Code) else None
        return value if line is None else type(value)(line.path, line.line, BACKWARD)

    return [mapped(record, place) for record in every] if lines else every


def _users_line(stack: Iterable[StackFrame], owners: Owners) -> StackFrame | None:
    """The innermost line that is neither torch's nor Python's."""
    mine = [frame for frame in stack if owners.is_programs(frame.path)]
    return mine[-1] if mine else None
