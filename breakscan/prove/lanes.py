"""The devices on which changes are proved at the same time. A change is compared with two processes of the unchanged
program on the same device.
"""

from __future__ import annotations

import contextlib
import statistics
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from breakscan.prove import faster as measure
from breakscan.prove.devices import Placement
from breakscan.prove.faster import Ratio
from breakscan.prove.observation import NothingToMeasure, Observation, ObservationKind, other_calls, require_one_device
from breakscan.prove.original import Baseline, Original
from breakscan.prove.protocol import CountLaunches, MeasureMemory, StepKind
from breakscan.prove.worker import ProgramChange, Worker, WorkerError
from breakscan.source.cores import CORES_TO_COMPILE, usable_cores


class TimingTurns:
    """Threads that work may do so at the same time, and so may those that time; the two take turns. Those that time go
    first, as soon as the others have ended what they do.
    """

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._working = 0
        self._timing = 0
        self._waiting_to_time = 0

    @contextlib.contextmanager
    def working(self) -> Iterator[None]:
        """Waits until nobody times or waits to time."""
        with self._changed:
            self._changed.wait_for(lambda: not self._timing and not self._waiting_to_time)
            self._working += 1
        try:
            yield
        finally:
            with self._changed:
                self._working -= 1
                self._changed.notify_all()

    @contextlib.contextmanager
    def timing(self) -> Iterator[None]:
        """Waits until nobody works."""
        with self._changed:
            self._waiting_to_time += 1
            try:
                self._changed.wait_for(lambda: not self._working)
                self._timing += 1
            finally:
                self._waiting_to_time -= 1
                self._changed.notify_all()
        try:
            yield
        finally:
            with self._changed:
                self._timing -= 1
                self._changed.notify_all()


LONGEST_AGAIN = 4.0
"""Seconds for which each further pair of processes is timed."""
BEFORE, SAME, AFTER = "before", "same", "after"
"""The blocks of a round: the two processes of the unchanged program, and that of the change."""


@dataclass(frozen=True, slots=True)
class _Prepared:
    seconds: float
    memory: int | None


@dataclass(frozen=True, slots=True)
class StepTimes:
    """The seconds of a step before and after the change, the speed ratio of the change, and the speed ratio that the
    second process of the unchanged program shows.
    """

    before: float
    after: float
    memory_before: int | None
    ratio: Ratio
    same: Ratio


class StepRace:
    """Times workers against the unchanged program. ``same`` is the last ratio of its two processes, None before
    anything was timed. Races on different devices take ``turns`` with other work.
    """

    def __init__(self, original: Original, turns: TimingTurns) -> None:
        self.same: Ratio | None = None
        self._original = original
        self._turns = turns

    @cached_property
    def _prepared(self) -> _Prepared:
        """Prepares both processes of the unchanged program, once."""
        first = self._original.first
        seconds = first.prepare(StepKind.COMPILED)
        self._original.second.prepare(StepKind.COMPILED)
        return _Prepared(seconds, first.ask(MeasureMemory(StepKind.COMPILED)))

    def run(self, worker: Worker) -> StepTimes:
        """Times a worker with a change.  Raises Unsteady and WorkerError."""
        with self._turns.working():
            before = self._prepared
            after = worker.prepare(StepKind.COMPILED)
        blocks = {BEFORE: self._original.first.block, SAME: self._original.second.block, AFTER: worker.block}
        with self._turns.timing():
            times = measure.interleave(blocks, [before.seconds, after], decided=_is_decided)
        self.same = measure.ratio([times[BEFORE]], times[SAME])
        return StepTimes(
            before=statistics.median(times[BEFORE] + times[SAME]),
            memory_before=before.memory,
            after=statistics.median(times[AFTER]),
            ratio=measure.ratio([times[BEFORE], times[SAME]], times[AFTER]),
            same=self.same,
        )

    def run_again(self, worker: Worker, change: ProgramChange) -> Ratio:
        """Times a change in a new process against a new one of the unchanged program. Both use what the others have
        compiled.  Raises Unsteady and WorkerError.
        """
        start = self._original.workers.start
        with contextlib.ExitStack() as stack:
            with self._turns.working():
                before = stack.enter_context(start(ProgramChange(), self._original.first))
                after = stack.enter_context(start(change, worker))
                for one in (before, after):
                    one.ready()
                    if self._original.values.hand_over(one):
                        raise WorkerError("a further process does not take the values")
                seconds = [one.prepare(StepKind.COMPILED) for one in (before, after)]
            blocks = {BEFORE: before.block, AFTER: after.block}
            with self._turns.timing():
                times = measure.interleave(blocks, seconds, LONGEST_AGAIN)
        return measure.ratio([times[BEFORE]], times[AFTER])

    def launches(self) -> Mapping[str, int] | None:
        """Counts what a step of the unchanged program launches on the device.

        Call it after all timing: the profiler slows down the process in which it has run.
        """
        if self.same is not None:
            with contextlib.suppress(WorkerError):
                return self._original.first.ask(CountLaunches(StepKind.COMPILED))
        return None

    def eager_memory(self) -> int | None:
        """Returns the most memory of a GPU that an eager step takes, None without one.

        Call it last: compiled steps cannot be timed after it.
        """
        if self.same is not None and "cuda" in self._original.about.devices:
            with contextlib.suppress(WorkerError):
                self._original.first.prepare(StepKind.EAGER)
                return self._original.first.ask(MeasureMemory(StepKind.EAGER))
        return None


def _is_decided(times: Mapping[str, Sequence[float]]) -> bool:
    return measure.is_decided(times[BEFORE], times[SAME], times[AFTER])


@dataclass(frozen=True, slots=True)
class Lane:
    """A device, with the two processes of the unchanged program there and their race."""

    original: Original
    race: StepRace


class Lanes:
    """The lanes, of which the first one is there from the beginning. Others are opened when they are needed.

    ``notes`` says which devices are not used, and why.
    """

    def __init__(self, original: Original, baseline: Baseline) -> None:
        self.turns = TimingTurns()
        self.first = Lane(original, StepRace(original, self.turns))
        self.notes: list[Observation] = []
        self._baseline = baseline
        self._opened = [self.first]
        self._unopened = list(original.further)

    @property
    def used(self) -> tuple[str, ...]:
        """The devices that were used, if several were named."""
        placements = [lane.original.first.program.placement for lane in self._opened]
        return tuple(one.label for one in placements if one is not None)

    def open(self, count: int) -> list[Lane]:
        """Returns lanes for so many changes, where the cores are enough to compile as many at the same time."""
        enough = max(1, usable_cores() // CORES_TO_COMPILE)
        if enough < count:
            while self._unopened and len(self._opened) + len(self._unopened) > enough:
                names = (self._unopened.pop().label,)
                self.notes.append(
                    Observation(ObservationKind.DEVICE_LACKS_CORES, names=names, numbers=(CORES_TO_COMPILE,))
                )
        most = min(count, enough)
        while len(self._opened) < most and self._unopened:
            placement = self._unopened.pop(0)
            try:
                lane = self._lane(placement)
            except (WorkerError, NothingToMeasure) as error:
                self.notes.append(Observation(ObservationKind.DEVICE_FAILS, str(error), (placement.label,)))
                continue
            if lane is not None:
                self._opened.append(lane)
        return self._opened[:most]

    def _lane(self, placement: Placement) -> Lane | None:
        """Returns the lane of a device, None if the program does something else there."""
        original = self.first.original
        workers = original.workers.on(placement)
        first, second = (original.keep_open(workers.start(ProgramChange(), original.first)) for _ in range(2))
        there = replace(original, workers=workers, first=first, second=second)
        for one in (first, second):
            about = one.ready()
            require_one_device(about, placement)
            if other := other_calls(about, original.about):
                self.notes.append(
                    Observation(ObservationKind.DEVICE_MAKES_OTHER_CALLS, names=(placement.label,), calls=other)
                )
                return None
            if differs := self._baseline.unrepeatable(one):
                kind = ObservationKind.DEVICE_DIFFERS
                self.notes.append(Observation(kind, names=(placement.label,), details=(differs.first,)))
                return None
            start = there.other_start(one)
            if names := sorted(start.values | start.generators):
                self.notes.append(
                    Observation(ObservationKind.DEVICE_STARTS_OTHERWISE, ", ".join(names), (placement.label,))
                )
                return None
        return Lane(there, StepRace(there, self.turns))
