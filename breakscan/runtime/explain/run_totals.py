"""What ran, over all processes of a recording, by the numbers that graphs have in a report."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, TypeVar

from breakscan.runtime.explain.compiled import Calls, RunTotals
from breakscan.runtime.explain.context import ExplainContext
from breakscan.runtime.explain.forks import Inherited, clock_shifts
from breakscan.runtime.records.compiles import CompileCalled
from breakscan.runtime.records.graphs import GraphCompiled
from breakscan.runtime.records.record import Record
from breakscan.runtime.records.runs import CallsRan, GapRan, GraphRan, RunsTraced
from breakscan.runtime.records.source import Code

R = TypeVar("R", GraphRan, GapRan, CallsRan)


@dataclass(slots=True)
class Ran:
    """``graphs`` in the order of a report, with the runs of each and the gaps after it; ``calls`` by what was called,
    each with its code; ``runs`` for a timeline."""

    graphs: list[GraphCompiled] = field(default_factory=list)
    of_graph: dict[int, GraphRan] = field(default_factory=dict)
    after_graph: dict[int, GapRan] = field(default_factory=dict)
    calls: dict[Code | str, Calls] = field(default_factory=dict)
    runs: list[RunTotals] = field(default_factory=list)


def what_ran(processes: Sequence[Sequence[Record]], lens: ExplainContext) -> Ran:
    """Counts of forked processes are added up: they run what their parent compiled."""
    ran = Ran()
    numbers: Inherited[int] = Inherited(processes)
    called: Inherited[CompileCalled] = Inherited(processes)
    for process, records in enumerate(processes):
        for record in records:
            if isinstance(record, GraphCompiled):
                numbers.add(process, record.graph, len(ran.graphs))
                ran.graphs.append(record)
            elif isinstance(record, CompileCalled):
                called.add(process, record.key, record)
    for process, records in enumerate(processes):
        for run in _last(records, GraphRan, "graph"):
            _add(ran.of_graph, numbers.get(process, run.graph), run)
        for gap in _last(records, GapRan, "follows"):
            _add(ran.after_graph, numbers.get(process, gap.follows), gap)
        for record in _last(records, CallsRan, "key"):
            _add_calls(ran.calls, called.get(process, record.key), record, lens)
    for process, (records, shift) in enumerate(zip(processes, clock_shifts(processes), strict=True)):
        ran.runs += [
            RunTotals(number, start + shift, seconds)
            for traced in records
            if isinstance(traced, RunsTraced)
            for graph, start, seconds in zip(traced.graphs, traced.starts, traced.seconds, strict=True)
            if (number := numbers.get(process, graph)) is not None
        ]
    return ran


def _last(records: Iterable[Record], kind: type[R], about: str) -> Iterable[R]:
    """Each record replaces those before it that are about the same."""
    return {getattr(record, about): record for record in records if isinstance(record, kind)}.values()


def _add(totals: dict[Any, R], name: Any, record: R) -> None:
    if name is None:
        return
    known = totals.get(name)
    totals[name] = _sum(known, record) if known else record


def _sum(a: R, b: R) -> R:
    _, *counts = (item.name for item in fields(a))
    return replace(a, **{name: getattr(a, name) + getattr(b, name) for name in counts})


def _add_calls(
    totals: dict[Code | str, Calls], called: CompileCalled | None, record: CallsRan, lens: ExplainContext
) -> None:
    """What shares its code is one: the blocks of a model, compiled one by one."""
    if called is None:
        return
    about = called.code or called.target
    name = lens.function_of(called.code) if called.code else called.target
    known = totals.get(about, Calls(name, 0, 0.0, 0.0, 0.0))
    totals[about] = Calls(
        known.name,
        known.calls + record.calls,
        known.seconds + record.seconds,
        known.graph_seconds + record.graph_seconds,
        known.gap_seconds + record.gap_seconds,
    )
