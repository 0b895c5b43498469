"""What the forward graphs of a run keep in memory until their backward runs, by the line that computed it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from breakscan.explain.compiled import SavedValue
from breakscan.explain.explanation import Explanation
from breakscan.model.findings import Site


@dataclass(frozen=True, slots=True)
class SavedAtLine:
    """What one call of each graph keeps of the values that a line computed; ``line`` is None where torch names none.
    ``unknown`` are those whose sizes are not known."""

    line: Site | None
    values: int
    bytes: int
    unknown: int


@dataclass(frozen=True, slots=True)
class SavedMemory:
    """``lines`` in the order of their bytes, the most first; ``inputs`` is what is kept of the graphs' inputs, such as
    parameters: that is in memory anyway."""

    bytes: int
    unknown: int
    inputs: int
    lines: Sequence[SavedAtLine]


def saved_memory(explanation: Explanation) -> SavedMemory:
    """Of one call of each graph: of versions of a function that was compiled again, only one runs at a time."""
    saved = _latest(explanation)
    computed: dict[Site | None, list[SavedValue]] = {}
    for value in saved:
        if not value.is_input:
            computed.setdefault(value.line, []).append(value)
    lines = [_at_line(line, values) for line, values in computed.items()]
    return SavedMemory(
        bytes=sum(line.bytes for line in lines),
        unknown=sum(line.unknown for line in lines),
        inputs=sum(value.bytes or 0 for value in saved if value.is_input),
        lines=sorted(lines, key=lambda line: -line.bytes),
    )


def _latest(explanation: Explanation) -> list[SavedValue]:
    """The values of the last graph of each function and number: ``0/1`` replaces ``0/0``."""
    kept: dict[tuple[str, int], list[SavedValue]] = {}
    for graph in explanation.graphs:
        frame = graph.compile_id.rpartition("/")[0]
        for number, made in enumerate(one for one in graph.generated if one.phase == "forward"):
            kept[frame, number] = list(made.saved)
    return [value for values in kept.values() for value in values]


def _at_line(line: Site | None, values: Sequence[SavedValue]) -> SavedAtLine:
    return SavedAtLine(
        line, len(values), sum(value.bytes or 0 for value in values), sum(value.bytes is None for value in values)
    )
