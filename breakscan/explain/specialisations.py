"""Dynamic sizes that the program's code turned into constants."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from breakscan.explain.compiled import ConstantReason, Specialisation
from breakscan.explain.context import ExplainContext
from breakscan.model.findings import Origin
from breakscan.record.parsers.guards import readable
from breakscan.record.records import CompileStarted, Record, ShapeSpecialised

_CONSEQUENCE = "find"
"""Torch's word for a size that had to equal one which is a constant by now."""
_NUMBER = re.compile(r"-?\d+$")
_REASONS = {"guard_int": ConstantReason.NUMBER, "guard_bool": ConstantReason.COMPARED}


def specialisations(
    records: Iterable[Record], started: Mapping[str, CompileStarted], lens: ExplainContext
) -> list[Specialisation]:
    """Each once, in the order in which the compiler met them.  ``started`` holds the frame of each compile."""
    found = {
        (record.compile_id, record.symbol): _specialisation(record, started, lens)
        for record in records
        if isinstance(record, ShapeSpecialised) and _is_users(record, lens)
    }
    return list(found.values())


def _is_users(record: ShapeSpecialised, lens: ExplainContext) -> bool:
    """Whether the program's own code could have kept the size dynamic.

    It could not where an operation's operands have to match, as a matrix and its weight, or where torch's own modules
    check that; compiled autograd's sizes are not the program's; floats are not sizes.
    """
    if record.reason == _CONSEQUENCE or record.asked_by == "expect_true" or record.compile_id.startswith("!"):
        return False
    if not (record.sources and record.stack and _NUMBER.match(record.value)):
        return False
    in_torch = lens.origin(record.stack[-1].path) is Origin.FRAMEWORK
    return record.asked_by == "guard_int" or not in_torch


def _specialisation(
    record: ShapeSpecialised, started: Mapping[str, CompileStarted], lens: ExplainContext
) -> Specialisation:
    own = [frame for frame in record.stack if lens.origin(frame.path) is not Origin.FRAMEWORK]
    where = (own or list(record.stack))[-1]
    begun = started.get(record.compile_id)
    return Specialisation(
        compile_id=record.compile_id,
        sources=tuple(readable(source) for source in record.sources),
        value=record.value,
        reason=_REASONS.get(record.asked_by or "", ConstantReason.OTHER),
        site=lens.sources.site(where.path, where.line, where.column, where.end_column),
        function=lens.function_of(begun.code) if begun else lens.function(where.path, where.line, where.name),
    )
