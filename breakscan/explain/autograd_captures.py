"""Backward passes that compiled autograd captured."""

from __future__ import annotations

from collections.abc import Iterable

from breakscan.explain.callers import Caller
from breakscan.explain.compiled import AutogradCapture
from breakscan.explain.context import ExplainContext
from breakscan.record.parsers.frames import BACKWARD
from breakscan.record.parsers.graphs import AutogradChange, autograd_change
from breakscan.record.records import CompiledAutograd, CompileStarted, Record, StackFrame


def autograd_captures(records: Iterable[Record], context: ExplainContext) -> list[AutogradCapture]:
    """Each capture with the reasons for which an earlier one did not serve."""
    ops: dict[str, int] = {}
    changes: dict[str, list[AutogradChange]] = {}
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
