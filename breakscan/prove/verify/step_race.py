"""Times a changed program against the two processes of the unchanged program."""

from __future__ import annotations

import contextlib
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from breakscan.prove.verify.original import Original
from breakscan.prove.verify.turns import TimingTurns
from breakscan.prove.worker import timing as measure
from breakscan.prove.worker.protocol import CountLaunches, MeasureMemory, StepKind
from breakscan.prove.worker.timing import Ratio
from breakscan.prove.worker.worker import ProgramChange, Worker, WorkerError

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
