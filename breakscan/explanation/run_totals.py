"""Runs of graphs and calls over all processes of a recording, by the numbers that graphs have in a report; and what a
forked process has from its parent: graphs, compiled functions, its clock."""

from __future__ import annotations

import operator
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import astuple, dataclass, field, fields
from typing import Generic, TypeVar

from breakscan.explanation.context import ExplainContext
from breakscan.recording.records import (
    CallsOnDevice,
    CallsRan,
    Code,
    CompileCalled,
    GapRan,
    GraphCompiled,
    GraphRan,
    ProcessForked,
    ProcessStarted,
    Record,
    Usual,
)

T = TypeVar("T")


class Inherited(Generic[T]):
    """The values that numbers have in a process: its own records count, else those of its parent.  They are records of
    ``kind`` by their ``number``, or are added."""

    def __init__(
        self,
        processes: Sequence[Sequence[Record]],
        kind: type[T] | tuple[()] = (),
        number: Callable[[T], int] = lambda _: 0,
    ) -> None:
        pids: dict[int, int] = {}
        self._parents: dict[int, int | None] = {}
        self._own: list[dict[int, T]] = [{} for _ in processes]
        for process, records in enumerate(processes):
            own = next((r for r in records if isinstance(r, ProcessStarted | ProcessForked)), None)
            if isinstance(own, ProcessForked):
                self._parents[process] = pids.get(own.parent_pid)
            if own:
                pids[own.pid] = process
            for record in records:
                if isinstance(record, kind):
                    self.add(process, number(record), record)

    def add(self, process: int, number: int, value: T) -> None:
        """The first value of a number counts."""
        self._own[process].setdefault(number, value)

    def get(self, process: int | None, number: int) -> T | None:
        while process is not None and number not in self._own[process]:
            process = self._parents.get(process)
        return None if process is None else self._own[process][number]


def began_at(processes: Sequence[Sequence[Record]]) -> float | None:
    """When the recording began, in seconds since the epoch; None for one without a process."""
    return min((r.time for records in processes for r in records if isinstance(r, ProcessStarted)), default=None)


def clock_shifts(processes: Sequence[Sequence[Record]]) -> list[float]:
    """For each process the seconds that turn a time of it into seconds since the recording began."""
    clocks = Inherited(processes, ProcessStarted)
    began = began_at(processes) or 0.0
    known = [clocks.get(process, 0) for process in range(len(processes))]
    return [clock.time - clock.clock - began if clock else 0.0 for clock in known]


@dataclass(frozen=True, slots=True)
class Calls:
    """The steady calls of something compiled: those in which nothing was compiled.  ``gap_seconds`` is the time
    after breaks, ``outside_seconds`` all that was spent outside graphs.  All but ``total_seconds``, which was measured,
    are medians times the number of calls: waiting once for something is not in them."""

    name: str
    calls: int
    seconds: float
    graph_seconds: float
    gap_seconds: float
    total_seconds: float = 0.0

    @property
    def outside_seconds(self) -> float:
        return max(0.0, self.seconds - self.graph_seconds)


R = TypeVar("R", GraphRan, GapRan, CallsRan, CallsOnDevice)
_NOTHING = Usual(0.0, 0.0, 0.0)
NO_GAPS = GapRan(-1, 0, 0.0, _NOTHING, 0, _NOTHING)
"""After a graph that nothing followed."""


@dataclass(slots=True)
class Ran:
    """``graphs`` in the order of a report, with the runs of each and the gaps after it; ``calls`` by what was called,
    each with its code; ``on_device`` what one of these calls spends on its device outside graphs, where that is
    known."""

    graphs: list[GraphCompiled] = field(default_factory=list)
    of_graph: dict[int, GraphRan] = field(default_factory=dict)
    after_graph: dict[int, GapRan] = field(default_factory=dict)
    calls: dict[Code | str, Calls] = field(default_factory=dict)
    on_device: dict[Code | str, float] = field(default_factory=dict)


def what_ran(processes: Sequence[Sequence[Record]], context: ExplainContext) -> Ran:
    """Counts of forked processes are added up: they run what their parent compiled."""
    ran = Ran()
    numbers: Inherited[int] = Inherited(processes)
    called = Inherited(processes, CompileCalled, operator.attrgetter("key"))
    for process, records in enumerate(processes):
        for record in records:
            if isinstance(record, GraphCompiled):
                numbers.add(process, record.graph, len(ran.graphs))
                ran.graphs.append(record)
    timed: dict[Code | str, list[tuple[Usual, int]]] = defaultdict(list)
    for process, records in enumerate(processes):
        for run in _last(records, GraphRan, "graph"):
            if (number := numbers.get(process, run.graph)) is not None:
                known = astuple(ran.of_graph.get(number, GraphRan(run.graph, 0, 0.0, 0, 0.0)))
                ran.of_graph[number] = GraphRan(run.graph, *map(operator.add, known[1:], astuple(run)[1:]))
        for gap in _last(records, GapRan, "follows"):
            if (number := numbers.get(process, gap.follows)) is not None:
                ran.after_graph[number] = _with_gaps(ran.after_graph.get(number, NO_GAPS), gap)
        for record in _last(records, CallsRan, "key"):
            _add_calls(ran.calls, called.get(process, record.key), record, context)
        for calls in _last(records, CallsOnDevice, "key"):
            if what := called.get(process, calls.key):
                timed[what.code or what.target].append((calls.outside, calls.timed))
    ran.on_device = {about: _together(parts).seconds for about, parts in timed.items()}
    return ran


def _last(records: Iterable[Record], kind: type[R], about: str) -> Iterable[R]:
    """Each record replaces those before it that are about the same."""
    return {getattr(record, about): record for record in records if isinstance(record, kind)}.values()


def _with_gaps(known: GapRan, gaps: GapRan) -> GapRan:
    return GapRan(
        follows=gaps.follows,
        passes=known.passes + gaps.passes,
        seconds=known.seconds + gaps.seconds,
        usual=_together([(known.usual, known.passes), (gaps.usual, gaps.passes)]),
        timed_on_device=known.timed_on_device + gaps.timed_on_device,
        usual_on_device=_together(
            [(known.usual_on_device, known.timed_on_device), (gaps.usual_on_device, gaps.timed_on_device)]
        ),
    )


def _together(parts: Sequence[tuple[Usual, int]]) -> Usual:
    """The mean of what was usual in several parts, each with its number of times."""
    times = sum(number for _, number in parts)
    if not times:
        return _NOTHING
    means = (sum(getattr(one, item.name) * number for one, number in parts) / times for item in fields(Usual))
    return Usual(*means)


def _add_calls(
    totals: dict[Code | str, Calls], called: CompileCalled | None, record: CallsRan, context: ExplainContext
) -> None:
    """Things that share their code are one: the blocks of a model, compiled one by one."""
    if called is None:
        return
    about = called.code or called.target
    name = context.function_of(called.code) if called.code else called.target
    known = totals.get(about, Calls(name, 0, 0.0, 0.0, 0.0))
    totals[about] = Calls(
        known.name,
        known.calls + record.calls,
        known.seconds + record.calls * record.usual.seconds,
        known.graph_seconds + record.calls * record.in_graphs.seconds,
        known.gap_seconds + record.calls * record.in_gaps.seconds,
        known.total_seconds + record.seconds,
    )
