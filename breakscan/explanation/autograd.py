"""The backward: what compiled autograd captured, and the lines of the program that a backward is for."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from breakscan.explanation.context import ExplainContext, Owners
from breakscan.model.problem import Caller
from breakscan.recording.parsers.frames import BACKWARD, is_captured_backward, is_written_by_fx
from breakscan.recording.parsers.graphs import autograd_change
from breakscan.recording.records import Code, CompiledAutograd, CompileStarted, Record, StackFrame, mapped


@dataclass(frozen=True, slots=True)
class AutogradCapture:
    """A backward pass that compiled autograd captured: the line that called it, and why no earlier capture served."""

    compile_id: str
    ops: int
    caller: Caller | None
    reasons: tuple[str, ...]


def autograd_captures(records: Iterable[Record], context: ExplainContext) -> list[AutogradCapture]:
    """Each capture with the reasons for which an earlier one did not serve."""
    ops: dict[str, int] = {}
    changes: dict[str, list[str]] = {}
    callers: dict[str, Caller] = {}
    for record in records:
        if isinstance(record, CompiledAutograd):
            ops[record.compile_id] = ops.get(record.compile_id, 0) + record.ops
            changes.setdefault(record.compile_id, []).extend(filter(None, map(autograd_change, record.reasons)))
        elif isinstance(record, CompileStarted) and record.code.name == BACKWARD:
            # ``!0/1/0`` is the first compile of the capture ``!0``.
            capture, code = record.compile_id.rsplit("/", 2)[0], record.code
            callers.setdefault(capture, context.caller(StackFrame(code.path, code.line, "<module>")))
    return [AutogradCapture(one, count, callers.get(one), tuple(changes[one])) for one, count in ops.items()]


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
