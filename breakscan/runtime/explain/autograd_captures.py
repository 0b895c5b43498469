"""Backward passes that compiled autograd captured."""

from __future__ import annotations

from collections.abc import Iterable

from breakscan.runtime.explain.compiled import AutogradCapture
from breakscan.runtime.records.graphs import CompiledAutograd
from breakscan.runtime.records.record import Record


def autograd_captures(records: Iterable[Record]) -> list[AutogradCapture]:
    """Each capture with the reasons for which an earlier one did not serve."""
    ops: dict[str, int] = {}
    reasons: dict[str, tuple[str, ...]] = {}
    for record in records:
        if isinstance(record, CompiledAutograd):
            ops[record.compile_id] = ops.get(record.compile_id, 0) + record.ops
            reasons[record.compile_id] = reasons.get(record.compile_id, ()) + record.reasons
    return [AutogradCapture(compile_id, count, reasons[compile_id]) for compile_id, count in ops.items()]
