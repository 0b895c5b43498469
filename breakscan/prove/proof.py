"""The result of ``verify``: the measurements with and without each change, and the verdict."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

from breakscan.fix.result import Refused
from breakscan.model.findings import Site
from breakscan.prove.changed_code import UnseenCode
from breakscan.prove.equal import ResultDifference
from breakscan.prove.faster import Ratio
from breakscan.prove.observation import Observation
from breakscan.prove.protocol import CompileOption, GraphOperation, Stage, TimedStep, VariedCall


class ProofVerdict(str, Enum):
    """The verdict on a change in one word."""

    ACCEPTED = "accepted"
    NO_FASTER = "no-faster"
    TOO_NOISY = "too-noisy"
    """It is equal, and the machine is too noisy to decide if it is faster."""
    REJECTED = "rejected"
    NOT_TRIED = "not-tried"
    """The changed code did not run, or the settings did not hold: nothing is known of it."""


@dataclass(frozen=True, slots=True)
class Metrics:
    """The measurements of one process that made the captured calls: ``kernels`` of a step by kind, the median of a step
    where it was timed, and ``eager_frames``, the functions that run eager as a whole."""

    breaks: int
    recompiles: int
    graphs: int
    eager_frames: int
    kernels: Mapping[str, int]
    compile_seconds: float
    first_call_seconds: float
    memory_bytes: int | None = None
    step_seconds: float | None = None

    @property
    def all_kernels(self) -> int:
        """The number of kernels of all kinds."""
        return sum(self.kernels.values())


@dataclass(frozen=True, slots=True)
class VariedDifference:
    """The difference of a callable with a change in a varied call, or the ``error`` with which only the change fails.
    ``is_stated`` says that the change states a difference of this kind."""

    call: VariedCall
    callable: str
    difference: ResultDifference | None = None
    error: str = ""
    is_stated: bool = False


@dataclass(frozen=True, slots=True)
class Proof:
    """One change and its verdict.

    ``rule``, ``rewrite`` and ``site`` identify the rewrite and its finding, and ``difference`` says in which way the
    rewrite is not safe, None if it is safe. ``reasons`` are the reasons for rejection, the most important first;
    ``outputs_equal`` is None if the outputs could not be compared. ``accepted_in`` is the set of changes with which an
    accepted change was timed, None if it was timed by itself."""

    label: str
    verdict: ProofVerdict
    reasons: tuple[Observation, ...]
    outputs_equal: bool | None
    before: Metrics
    after: Metrics | None = None
    ratio: Ratio | None = None
    rule: str | None = None
    rewrite: str | None = None
    site: Site | None = None
    difference: str | None = None
    diff: str = ""
    members: tuple[str, ...] = ()
    """The labels of the changes, in a proof of several changes together."""
    slower: bool = False
    """The change is slower, not merely no faster."""
    breaks_there: bool = True
    """True if the unchanged program breaks the graph at the change, if that is asked. Another break may hide it."""
    revealed: tuple[str, ...] = ()
    """The places that break the graph with the change only."""
    unseen: tuple[UnseenCode, ...] = ()
    """Its code that neither a captured call ran, nor a varied one."""
    varied: tuple[VariedDifference, ...] = ()
    """The differences of the results of varied calls. This does not change the verdict."""
    noted: tuple[ResultDifference, ...] = ()
    """Differences that are no error: a tensor in place of the number that it holds, near ties that rounding decides."""
    printed: tuple[str, str] | None = None
    """The text that a call prints, without and with the change, where that differs."""
    accepted_in: str | None = None

    @property
    def is_clear(self) -> bool:
        """Return True if the change is accepted, and nothing is left to report of its members one by one: all of its
        code ran, and it does the same in varied calls."""
        return self.verdict is ProofVerdict.ACCEPTED and not self.unseen and not self.varied

    @property
    def is_held_back(self) -> bool:
        """Return True if the change may do other things in calls that were not captured, and does not state it."""
        return bool(self.unseen) or not all(found.is_stated for found in self.varied)


@dataclass(frozen=True, slots=True)
class Divergence:
    """The differences of the unchanged program, compiled, from eager.

    ``differences`` has the first one of each value. ``stage`` is the first stage of compiling with which the results
    differ, None if they did not differ in a further process. ``operation`` is the first one that has to be compiled for
    that, None if it was not found; ``since`` is the first of those before it that have to be compiled with it, None if
    it differs alone. ``setting`` is a setting of Inductor with which nothing differs. ``program`` is the file of a
    minimal program that was written and shows a difference, too."""

    differences: tuple[ResultDifference, ...]
    stage: Stage | None = None
    operation: GraphOperation | None = None
    since: GraphOperation | None = None
    setting: tuple[str, CompileOption] | None = None
    program: str | None = None


class NotApplied(Enum):
    """Why nothing was written."""

    INTERRUPTED = "it was interrupted before all was proved"
    NONE_ACCEPTED = "no change was accepted"


@dataclass(frozen=True, slots=True)
class Verification:
    """All proofs of one command: single changes, then parts of the whole set, then the set.

    ``callables`` is how many calls of each were captured, and ``backward`` names those with a backward pass.  ``same``
    is the ratio of two processes that both run the unchanged program, ``step`` what was timed; ``tolerances`` are those
    of results, by dtype.  ``dependent`` are rewrites that change something only after others, so that they are proved
    only with these; ``unreached`` are findings that could be rewritten but whose code the calls do not run; ``notes``
    are further remarks.  ``applied`` are the files that were written, and ``not_applied`` is why others were not: texts
    are errors.  ``divergence`` is how the unchanged program, compiled, differs from eager, None if it does not;
    ``compared`` says that this was compared.  ``held_back`` are accepted changes that were to be written and were not,
    because they may behave otherwise in calls that were not captured."""

    argv: tuple[str, ...]
    environment: Mapping[str, str]
    callables: Mapping[str, int]
    backward: frozenset[str]
    proofs: tuple[Proof, ...]
    same: Ratio | None
    tolerances: Mapping[str, float]
    dependent: tuple[str, ...] = ()
    unreached: tuple[str, ...] = ()
    declined: tuple[Refused, ...] = ()
    notes: tuple[Observation, ...] = ()
    applied: tuple[str, ...] = ()
    not_applied: NotApplied | tuple[str, ...] | None = None
    held_back: tuple[str, ...] = ()
    breaks: int = 0
    step: TimedStep | None = None
    divergence: Divergence | None = None
    compared: bool = True
    interrupted: bool = False
    """The user stopped the command; it holds what was proved until then."""
