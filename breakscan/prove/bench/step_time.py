"""Times the steps of a process, compiled and eager.

Both run in one process, as in a timing script written by hand. What makes one process slower than another, such as the
placement of its memory, slows down both.
"""

from __future__ import annotations

import functools
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from breakscan.prove.bench.result import Variant
from breakscan.prove.worker import timing as measure
from breakscan.prove.worker.protocol import Compile, CompileRegional, MeasureMemory, Prepare, StepKind, WarmUp
from breakscan.prove.worker.timing import Ratio
from breakscan.prove.worker.worker import Worker


@dataclass(frozen=True, slots=True)
class Pace:
    """The seconds of steps, round by round, and the peak memory of compiled ones in bytes."""

    eager: list[float]
    compiled: list[float]
    memory_bytes: int | None

    @property
    def step_seconds(self) -> float:
        """The median of a compiled step, in seconds."""
        return statistics.median(self.compiled)

    @property
    def ratio(self) -> Ratio:
        """How many times as fast as an eager step a compiled one is."""
        return measure.ratio([self.eager], self.compiled)


def compile_in(worker: Worker, variant: Variant) -> None:
    """Makes a worker compile as a variant does from now on."""
    if variant.options is not None:
        worker.ask(Compile(dict(variant.options)))
    if variant.regional is not None:
        worker.ask(CompileRegional(variant.regional))


def prepare(worker: Worker) -> None:
    """Compiles what a worker is to be timed with, without the recorder. Raises WorkerError."""
    worker.ask(Prepare(StepKind.COMPILED))


def pace_of(worker: Worker, longest: float, same: Ratio) -> Pace:
    """Times a worker that is prepared, for ``longest`` seconds at most. By how much something is slower than eager is
    not worth more of them. ``same`` is the ratio of two eager processes. Raises Unsteady and WorkerError.
    """
    compiled = worker.ask(WarmUp(StepKind.COMPILED))
    memory = worker.ask(MeasureMemory(StepKind.COMPILED))
    eager = worker.prepare(StepKind.EAGER)
    blocks: dict[str, measure.Block] = {
        kind: functools.partial(worker.block, kind=kind) for kind in (StepKind.EAGER, StepKind.COMPILED)
    }

    def is_decided(times: Mapping[str, Sequence[float]]) -> bool:
        return measure.is_surely_slower(times[StepKind.EAGER], times[StepKind.COMPILED], same)

    times = measure.interleave(blocks, [eager, compiled], longest, is_decided)
    return Pace(times[StepKind.EAGER], times[StepKind.COMPILED], memory)
