"""The result of ``bench``: the measurements of each variant of the program's calls, and which one to choose."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum

from breakscan.prove.candidate import Candidate
from breakscan.prove.faster import LEAST, Ratio, apart, is_faster
from breakscan.prove.observation import Observation
from breakscan.prove.protocol import Stage, TimedStep

OWN = "program's own"
"""The label of the variant in which the program itself compiles."""


class MeasurementStatus(str, Enum):
    """The outcome of a variant in one word."""

    MEASURED = "measured"
    FAILED = "failed"
    DIFFERS = "differs"
    """It was measured, and its results differ from those of eager code."""
    UNSTEADY = "unsteady"
    """It is compiled again and again."""
    SKIPPED = "skipped"


@dataclass(frozen=True, slots=True)
class BenchRow:
    """The measurements of one variant; None and empty values were not measured.

    ``stage`` is the stage that failed, and ``problem`` the reason; or what differs, what is compiled again, or why it
    was not run.  ``kernels`` are those of a step, by kind; ``compile_seconds`` has
    ``total`` and the stages in it; ``startup_seconds`` pass before that, for the import of the compiler;
    ``compiling_seconds`` are those that the first calls take longer than later ones, from empty caches; ``busy`` says
    that other programs had the cores meanwhile;
    ``ratio`` says how many times as fast as eager a step is, measured in ``processes`` processes; ``pays_after_calls``
    counts from the first call.
    """

    variant: Candidate
    status: MeasurementStatus
    stage: Stage | None = None
    problem: Observation | None = None
    same_as: str | None = None
    breaks: int | None = None
    recompiles: int | None = None
    graphs: int | None = None
    eager_frames: int | None = None
    kernels: Mapping[str, int] = field(default_factory=dict)
    compile_seconds: Mapping[str, float] = field(default_factory=dict)
    startup_seconds: float = 0.0
    busy: bool = False
    first_call_seconds: float | None = None
    compiling_seconds: float | None = None
    step_seconds: float | None = None
    ratio: Ratio | None = None
    processes: int | None = None
    memory_bytes: int | None = None
    pays_after_calls: int | None = None

    @property
    def label(self) -> str:
        """The label of the variant."""
        return self.variant.label

    @property
    def is_own(self) -> bool:
        """Return True if the program compiles as it does by itself."""
        return self.variant.options is None

    @property
    def spent_on_compiling(self) -> float | None:
        """The same with the import of the compiler."""
        return None if self.compiling_seconds is None else self.startup_seconds + self.compiling_seconds

    @property
    def eager_seconds(self) -> float | None:
        """The time of an eager step in the same rounds."""
        return None if self.ratio is None or self.step_seconds is None else self.step_seconds * self.ratio.median


@dataclass(frozen=True, slots=True)
class Eager:
    """The program run without a compiler, the baseline of all variants."""

    first_call_seconds: float
    step_seconds: float
    memory_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class Bench:
    """The result of one command.

    ``same`` is the ratio of two processes that both run eager, ``step`` what was timed.  ``best`` is the label of the
    variant to choose, None if none is faster than eager; ``as_fast`` are those within noise of the fastest.
    ``backward`` are the callables whose backward pass the program runs; ``write`` is the code to write for the best,
    None if the program already does so.
    """

    argv: tuple[str, ...]
    environment: Mapping[str, str]
    callables: Mapping[str, int]
    backward: frozenset[str]
    rows: tuple[BenchRow, ...]
    eager: Eager | None = None
    same: Ratio | None = None
    notes: tuple[Observation, ...] = ()
    interrupted: bool = False
    step: TimedStep | None = None
    best: str | None = None
    as_fast: tuple[str, ...] = ()
    write: str | None = None

    def row(self, label: str | None) -> BenchRow | None:
        """Returns the row with this label."""
        return next((row for row in self.rows if row.label == label), None)


AS_CHEAP = 1.25
"""The program's own variant is kept if its cold cost is at most this many times that of the cheapest variant."""


def pays_after(row: BenchRow, same: Ratio) -> int | None:
    """Returns the number of calls, including the first, after which the time spent on compiling is recovered.

    Returns None if a step is not faster than eager.
    """
    spent = row.spent_on_compiling
    if row.ratio is None or row.eager_seconds is None or row.step_seconds is None or spent is None:
        return None
    if row.busy or row.ratio.is_noisy or not is_faster(row.ratio, same):
        return None
    return max(1, math.ceil(spent / (row.eager_seconds - row.step_seconds)))


def best_of(rows: Sequence[BenchRow], same: Ratio) -> tuple[BenchRow | None, tuple[BenchRow, ...]]:
    """Returns the variant to choose, and all that are as fast within noise, including it.

    It is the one whose first calls cost least, or the program's own if that costs about as little. Returns None if none
    is faster than eager.
    """
    faster = [
        row
        for row in rows
        if row.status is MeasurementStatus.MEASURED and row.ratio is not None and is_faster(row.ratio, same)
    ]
    if not faster:
        return None, ()
    fastest = max(faster, key=lambda row: _ratio(row).low)
    least = max(LEAST, apart(same))
    as_fast = [row for row in faster if not is_slower(row, fastest, least)]
    cheapest = min(as_fast, key=_cost)
    own = next((row for row in as_fast if row.is_own), None)
    best = own if own is not None and _cost(own) <= AS_CHEAP * _cost(cheapest) else cheapest
    return best, tuple(as_fast)


def is_slower(row: BenchRow, fastest: BenchRow, least: float) -> bool:
    """Returns whether a variant is slower than another.

    Each was timed against eager runs in its own process. A machine that was faster at that time changes the ratio, and
    it changes the step as well, so both have to agree.
    """
    if row.step_seconds is None or fastest.step_seconds is None:
        return False
    by_ratio = _ratio(fastest).low > least * _ratio(row).high
    return by_ratio and row.step_seconds > least * fastest.step_seconds


def _ratio(row: BenchRow) -> Ratio:
    assert row.ratio is not None
    return row.ratio


def _cost(row: BenchRow) -> float:
    return row.spent_on_compiling or 0.0
