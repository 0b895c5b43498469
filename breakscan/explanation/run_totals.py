"""Runs of graphs and calls over all processes of a recording, by the numbers that graphs have in a report, the profile
of a step; and what a forked process has from its parent: graphs, compiled functions, its clock."""

import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Generic, TypeVar

from breakscan.explanation.context import ExplainContext
from breakscan.model.words import duration, grouped
from breakscan.recording.records import (
    NO_TIME,
    CallsRan,
    Code,
    CompileCalled,
    GraphCompiled,
    GraphRan,
    ProcessForked,
    ProcessStarted,
    Record,
    StepsProfiled,
    Usual,
)

T = TypeVar("T")


class Inherited(Generic[T]):
    """The records of a ``kind`` that a process has by their ``number``: the first of its own, else its parent's."""

    def __init__(
        self, processes: Sequence[Sequence[Record]], kind: type[T], number: Callable[[T], int] = lambda _: 0
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
                    self._own[process].setdefault(number(record), record)

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


NOT_RUN = GraphRan(-1, 0, 0.0, 0, 0.0)


@dataclass(frozen=True, slots=True)
class Ran:
    """``graphs`` in the order of a report, with the runs of each; ``calls`` by what was called, each with its code;
    ``on_device`` what one of these calls spends on its device outside graphs, where that is known."""

    graphs: list[GraphCompiled]
    of_graph: Mapping[int, GraphRan]
    calls: Mapping[Code | str, Calls]
    on_device: Mapping[Code | str, float]


def what_ran(context: ExplainContext) -> Ran:
    """Counts of forked processes are added up: they run what their parent compiled."""
    graphs = context.of(GraphCompiled)
    numbers = {id(graph): number for number, graph in enumerate(graphs)}
    compiled = Inherited(context.processes, GraphCompiled, operator.attrgetter("graph"))
    called = Inherited(context.processes, CompileCalled, operator.attrgetter("key"))
    runs = grouped(
        (numbers[id(graph)], run)
        for process, run in context.last(GraphRan, "graph")
        if (graph := compiled.get(process, run.graph))
    )
    # Things that share their code are one: the blocks of a model, compiled one by one.
    calls = grouped(
        (call.code or call.target, record)
        for process, record in context.last(CallsRan, "key")
        if (call := called.get(process, record.key))
    )
    timed = {about: [(one.outside, one.timed_on_device) for one in those] for about, those in calls.items()}
    return Ran(
        graphs,
        {number: _all_runs(those) for number, those in runs.items()},
        {about: _all_calls(about, those, context) for about, those in calls.items()},
        {about: _together(parts).seconds for about, parts in timed.items() if any(number for _, number in parts)},
    )


def _all_runs(runs: Sequence[GraphRan]) -> GraphRan:
    counts = {name: sum(getattr(run, name) for run in runs) for name in _COUNTS}
    gap = _together([(one.gap, one.passes) for one in runs])
    on_device = _together([(one.gap_on_device, one.gaps_on_device) for one in runs])
    return replace(runs[0], **counts, gap=gap, gap_on_device=on_device)


_COUNTS = ("runs", "seconds", "timed_on_device", "device_seconds", "passes", "gaps_on_device")


def _all_calls(about: Code | str, calls: Sequence[CallsRan], context: ExplainContext) -> Calls:
    return Calls(
        context.function_of(about) if isinstance(about, Code) else about,
        sum(one.calls for one in calls),
        sum(one.calls * one.usual.seconds for one in calls),
        sum(one.calls * one.in_graphs.seconds for one in calls),
        sum(one.calls * one.in_gaps.seconds for one in calls),
        sum(one.seconds for one in calls),
    )


def _together(parts: Sequence[tuple[Usual, int]]) -> Usual:
    """The mean of what was usual in several parts, each with its number of times."""
    times = sum(number for _, number in parts)
    if not times:
        return NO_TIME
    means = (sum(getattr(one, item.name) * number for one, number in parts) / times for item in fields(Usual))
    return Usual(*means)


@dataclass(frozen=True, slots=True)
class StepProfile:
    """The means of a few steps, from one call of ``function`` to the next."""

    function: str
    means: StepsProfiled

    @property
    def lines(self) -> Iterator[str]:
        """The profile in words: parts of the host's time, host and device, the costliest call."""
        of = self.means
        rest = max(0.0, of.profiled - of.graphs - of.eager - of.entering - of.waiting)
        yield (
            f"A step, from one call of {self.function} to the next, takes {duration(of.seconds)}, with the profiler "
            f"{duration(of.profiled)}: on the host {duration(of.graphs)} in graphs, {duration(of.eager)} in "
            f"eager operations, {duration(of.entering)} in entering compiled code and guards, {duration(rest)} "
            "elsewhere"
        )
        if of.device is not None:
            # The profiler takes time of the host alone.
            yield (
                f"The device computes for {duration(of.device)} and waits "
                f"{duration(max(0.0, of.seconds - of.device))} for the host; the host waits "
                f"{duration(of.waiting)} for the device"
            )
        if of.calls:
            first = of.calls[0]
            yield (
                f"The costliest library call on the host is {first.name}: {duration(first.seconds)} a step, "
                f"{first.calls:.3g} calls"
            )


def step_profile(context: ExplainContext) -> StepProfile | None:
    """The profile of the first process that has one."""
    for records in context.processes:
        if profile := next((one for one in records if isinstance(one, StepsProfiled)), None):
            called = (one for one in records if isinstance(one, CompileCalled) and one.key == profile.key)
            call = next(called, None)
            name = "a function" if call is None else context.function_of(call.code) if call.code else call.target
            return StepProfile(name, profile)
    return None
