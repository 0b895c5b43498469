"""The result of ``tune``: the best program that was found, and all that was tried."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum

from breakscan.model.remedy import RemedyKind
from breakscan.prove.changed_code import UnseenCode
from breakscan.prove.faster import Ratio
from breakscan.prove.observation import Observation
from breakscan.prove.proof import NotApplied, VariedDifference

Texts = Mapping[str, str]
"""The texts of files, by absolute path."""


class Goal(str, Enum):
    """The thing to make small."""

    STEP = "step"
    COMPILE = "compile"
    MEMORY = "memory"


@dataclass(frozen=True, slots=True)
class ProgramChange:
    """A change of the program's text that ``tune`` can try.

    ``name`` identifies it for people (``net.py:12 where``, ``capture_scalar_outputs = True``); ``assumes`` are the
    things that have to be true for it to be right, in at most two lines.  ``write`` returns the texts of the files that
    it changes, as they are after other changes, and None where it does not fit them."""

    kind: RemedyKind
    name: str
    write: Callable[[Texts], Texts | None]
    assumes: tuple[str, ...] = ()


class TrialVerdict(str, Enum):
    """The verdict on a change that was tried."""

    GAINS = "gains"
    NO_GAIN = "no-gain"
    """It is equal and no better."""
    DIFFERS = "differs"
    """The program computes something else with it."""
    FAILS = "fails"
    NOT_TRIED = "not-tried"
    """There was no time for it."""


@dataclass(frozen=True, slots=True)
class RunFigures:
    """The figures of a run of the program, up to the same step in each run.

    ``eager_functions`` are functions that run eager as a whole, also those that are called plainly next to what is
    compiled; ``step_seconds`` is the median of the steps in which nothing was compiled, None where there is none;
    ``run_seconds`` is the time from the first step to the last, with what was compiled in it; ``memory_bytes`` is the
    most memory that was in use, on the GPU if one is used."""

    breaks: int
    recompiles: int
    eager_functions: int
    graphs: int
    compile_seconds: float
    run_seconds: float
    step_seconds: float | None = None
    memory_bytes: int | None = None

    @property
    def problems(self) -> tuple[int, int, int]:
        """Its problems, in an order for where times do not decide.  A function that runs eager does so up to
        the end: it counts for more than any number of breaks and recompiles.  Of these, each counts for one: a break
        costs a little in each step, a recompile much once.  Of equal sums, that with fewer breaks comes first."""
        return self.eager_functions, self.breaks + self.recompiles, self.breaks


class Evidence(str, Enum):
    """The results by which the best program was compared with the program as it is."""

    CALLS = "calls"
    """Those of the compiled calls, with their gradients and state, as ``verify`` does."""
    VARIED = "varied"
    """Those of varied calls."""
    RUN = "run"
    """Those of the whole run: the tensors, arrays and numbers that its names hold at its end."""
    EAGER = "eager"
    """The same, with those without the compiler: those of the program as it is differ."""


@dataclass(frozen=True, slots=True)
class Trial:
    """A trial of one or several changes, why it was not taken, and the figures of what it was tried ``over``."""

    names: tuple[str, ...]
    kind: RemedyKind
    verdict: TrialVerdict
    reason: str | Observation = ""
    figures: RunFigures | None = None
    ratio: Ratio | None = None
    over: RunFigures | None = None


@dataclass(frozen=True, slots=True)
class Best:
    """The best program: its changes, as a unified diff relative to the current folder, and its figures next to those
    of the program as it is.  ``ratio`` is that of their steps; ``held_back`` has why ``--apply`` does not write it
    unasked: code that no call ran, differences in varied calls, texts."""

    changes: tuple[Trial, ...]
    patch: str
    before: RunFigures
    after: RunFigures
    ratio: Ratio | None
    compared: tuple[Evidence, ...]
    assumes: tuple[str, ...] = ()
    held_back: tuple[UnseenCode | VariedDifference | str, ...] = ()


@dataclass(frozen=True, slots=True)
class Tuning:
    """The result of ``tune``.  ``before`` are the figures of the program as it is, ``eager`` those without the
    compiler, None where they were not measured.  ``best`` is None where nothing is better than the program as it is;
    ``steps`` is the number of steps of each run and ``step`` the loop, an iteration of which is a step, None for the
    whole program.  ``cut`` says that the program would go on after these."""

    argv: tuple[str, ...]
    environment: Mapping[str, str]
    goal: Goal
    seconds: float
    steps: int
    step: str | None
    cut: bool
    before: RunFigures
    eager: RunFigures | None
    best: Best | None
    tried: tuple[Trial, ...]
    notes: tuple[str | Observation, ...] = ()
    applied: tuple[str, ...] = ()
    not_applied: NotApplied | tuple[str, ...] | None = None
    interrupted: bool = False
