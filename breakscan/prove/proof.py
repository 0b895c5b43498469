"""The results of ``verify`` and ``tune``."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum

from breakscan.fix.result import Refused
from breakscan.model.findings import Site
from breakscan.model.remedy import RemedyKind
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
    it changes, as they are after other changes, and None where it does not fit them.  One that ``skips`` code
    in compiled calls has to be proved by these: no call may have run it."""

    kind: RemedyKind
    name: str
    write: Callable[[Texts], Texts | None]
    assumes: tuple[str, ...] = ()
    skips: bool = False


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
    """Those of the whole run: the tensors, arrays and numbers that its names hold at its end, and what calls return."""
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
    whole program.  ``cut`` says that the program would go on after these, ``error`` that it fails as it is."""

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
    error: str | None = None
