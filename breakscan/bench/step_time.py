"""How fast a process runs its steps compiled, beside eager steps of its own.

Both in one process, as in a timing script that one writes by hand: what makes one process slower than another one, such
as where its memory lies, slows down both.
"""

from __future__ import annotations

import functools
import statistics
from dataclasses import dataclass

from breakscan.worker import timing as measure
from breakscan.worker.timing import COMPILED, EAGER, Ratio
from breakscan.worker.worker import Worker


@dataclass(frozen=True, slots=True)
class Pace:
    """The seconds of steps, round by round, and the most bytes in use in compiled ones."""

    eager: list[float]
    compiled: list[float]
    memory_bytes: int | None

    @property
    def step_seconds(self) -> float:
        """The median of a compiled step."""
        return statistics.median(self.compiled)

    @property
    def ratio(self) -> Ratio:
        """How many times as fast as eager a compiled step is."""
        return measure.ratio([self.eager], self.compiled)


def pace_of(worker: Worker, longest: float) -> Pace:
    """Times an arm for so many seconds, in which it has been handed the values.  Raises Unsteady and ArmError."""
    compiled: float = worker.ask("prepare", kind=COMPILED)
    memory = worker.ask("memory")
    eager: float = worker.ask("prepare", kind=EAGER)
    blocks = {kind: functools.partial(worker.block, kind=kind) for kind in (EAGER, COMPILED)}
    times = measure.interleave(blocks, [eager, compiled], longest)
    return Pace(times[EAGER], times[COMPILED], memory)
