"""Puts the backward passes that compiled autograd captured where the program asks for them.

Torch writes a function for each, ``forward`` in ``<eval_with_key>.3``, that no user knows.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any

from breakscan.explain.owners import Owners
from breakscan.record.parsers.frames import BACKWARD, is_captured_backward, is_written_by_fx
from breakscan.record.records import Code, CompileStarted, Record, StackFrame


def with_backward_lines(records: Iterable[Record], owners: Owners) -> list[Record]:
    """The records of a process, in which each place in a captured backward is the line that called it."""
    every = list(records)
    lines: dict[str, StackFrame] = {}
    for record in every:
        if isinstance(record, CompileStarted) and is_captured_backward(record.compile_id):
            line = _users_line(record.stack, owners)
            if line is not None and is_written_by_fx(record.code.path):
                lines.setdefault(record.code.path, line)
    return [_placed(record, lines) for record in every] if lines else every


def _users_line(stack: Iterable[StackFrame], owners: Owners) -> StackFrame | None:
    """The innermost line that is neither torch's nor Python's."""
    mine = [frame for frame in stack if owners.is_programs(frame.path)]
    return mine[-1] if mine else None


def _placed(value: Any, lines: Mapping[str, StackFrame]) -> Any:
    """The value, itself where nothing in it is in a captured backward."""
    if isinstance(value, StackFrame | Code):
        line = lines.get(value.path)
        return value if line is None else type(value)(line.path, line.line, BACKWARD)
    if isinstance(value, tuple):
        placed = tuple(_placed(item, lines) for item in value)
        return placed if any(new is not old for new, old in zip(placed, value, strict=True)) else value
    if is_dataclass(value) and not isinstance(value, type):
        held = {field.name: getattr(value, field.name) for field in fields(value)}
        changed = {name: new for name, old in held.items() if (new := _placed(old, lines)) is not old}
        return replace(value, **changed) if changed else value
    return value
