"""The result of ``bench``: the measurements of each variant of the program's calls."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

from breakscan.prove.candidate import Candidate, MeasuringStep
from breakscan.prove.faster import Ratio
from breakscan.prove.observation import Observation
from breakscan.prove.protocol import Stage


@dataclass(frozen=True, slots=True)
class BenchProgress:
    """A step for a variant, None for the eager program. ``number`` counts the variants, or its processes."""

    step: MeasuringStep
    label: str | None = None
    number: int = 0
    of: int = 0


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
class BenchProblem:
    """What went wrong with a variant: the stage that failed and the reason; or what differs, what is compiled again, or
    why it was not run.
    """

    stage: Stage
    observation: Observation


@dataclass(frozen=True, slots=True)
class BenchRow:
    """The measurements of one variant; None and empty values were not measured.

    ``kernels`` are those of a step, by kind; ``launches`` is what a step launches on a GPU; ``compile_seconds`` has
    ``total`` and the stages in it; ``startup_seconds`` pass before that, for the import of the compiler;
    ``cold_seconds`` are those of the first ``cold_steps`` steps, including compiling.
    ``busy`` says that other programs had the cores meanwhile;
    ``ratio`` says how many times as fast as eager a step is, measured in ``processes`` processes; ``pays_after_calls``
    counts from the first call.
    """

    variant: Candidate
    status: MeasurementStatus
    problem: BenchProblem | None = None
    same_as: str | None = None
    breaks: int | None = None
    recompiles: int | None = None
    graphs: int | None = None
    eager_frames: int | None = None
    kernels: Mapping[str, int] = field(default_factory=dict)
    launches: Mapping[str, int] | None = None
    compile_seconds: Mapping[str, float] = field(default_factory=dict)
    startup_seconds: float = 0.0
    busy: bool = False
    first_call_seconds: float | None = None
    cold_seconds: float | None = None
    cold_steps: float | None = None
    step_seconds: float | None = None
    ratio: Ratio | None = None
    processes: int | None = None
    memory_bytes: int | None = None
    pays_after_calls: int | None = None

    @property
    def label(self) -> str:
        """The label of the variant."""
        return self.variant.name

    @property
    def spent_on_compiling(self) -> float | None:
        """The seconds that the first steps of a program take longer than later ones, from empty caches, with the import
        of the compiler."""
        if self.cold_seconds is None or self.cold_steps is None:
            return None
        return self.startup_seconds + self.cold_seconds - self.cold_steps * (self.step_seconds or 0.0)

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
    launches: Mapping[str, int] | None = None


@dataclass(frozen=True, slots=True)
class LeastTime:
    """From this number of calls on, a variant (``eager``, too) takes the least time in all, including compiling.

    ``write`` is the code to write for it, None if the program already does so.
    """

    label: str
    from_call: int
    write: str | None = None


@dataclass(frozen=True, slots=True)
class Bench:
    """The result of one command.

    ``same`` is the ratio of two processes that both run eager. ``best`` is the label of the variant to choose, None if
    none is faster than eager; ``backward`` are the callables whose backward pass the program runs, and it is measured
    with them; ``compiled_at_once`` is the most variants that were compiled at the same time; ``devices`` are those
    beside the first one; ``as_fast`` are those within noise of the fastest. ``write`` is the code to write for it, None
    if the program already does so. ``least_time`` says which variant takes the least time for how many calls.
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
    compiled_at_once: int = 1
    best: str | None = None
    as_fast: tuple[str, ...] = ()
    write: str | None = None
    least_time: tuple[LeastTime, ...] = ()

    def row(self, label: str | None) -> BenchRow | None:
        """Returns the row with this label."""
        return next((row for row in self.rows if row.label == label), None)
