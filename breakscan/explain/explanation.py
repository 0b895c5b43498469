"""The explanation of one run: the objects that the reports of ``explain`` are made from."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum

from breakscan.explain.callers import Caller
from breakscan.explain.compiled import (
    AutogradCapture,
    Calls,
    CompiledFrame,
    CudaGraphRecording,
    CudaGraphSkip,
    FunctionValues,
    Graph,
    PeakMemory,
    Precompiled,
    Price,
    RunTotals,
    Specialisation,
)
from breakscan.explain.exported import Export, ExportFailure
from breakscan.explain.notice import AnyNotice
from breakscan.explain.reasons import Reason
from breakscan.explain.timelines import Timeline
from breakscan.model.findings import Origin, Place, Site, Verdict
from breakscan.model.observations import ValueSeen
from breakscan.record.parsers.guards import Demand, Within
from breakscan.record.records import EAGER_FIRST_STANCE
from breakscan.rulebook.document import Rule

_NAMED_DEVICE = re.compile(r"\((.+)\)$")


@dataclass(frozen=True, slots=True)
class FunctionPart:
    """A function, or with ``rest_only`` the part of it that follows a graph break."""

    function: str
    rest_only: bool = False


@dataclass(frozen=True, slots=True)
class BreakSite:
    """All occurrences of one graph break at one site.

    ``reason`` is Dynamo's own, in one line; ``consequence`` the type of the break that followed from it, such
    as the loop around it; ``given_up`` the functions that run eager because of it; ``stack`` the way there,
    outermost first; ``code`` the line on which the site begins, without the blanks around it;
    ``values`` what the names on that line were; ``logging_method`` is what logs there, as an expression that any code
    can evaluate.
    """

    rule: Rule | None
    gb_type: str
    gb_id: str | None
    reason: str
    hints: tuple[str, ...]
    advice: str | None
    site: Site
    function: str | None
    origin: Origin
    place: Place
    count: int
    verdict: Verdict
    consequence: str | None
    given_up: tuple[FunctionPart, ...]
    compile_ids: tuple[str, ...]
    stack: tuple[Caller, ...]
    price: Price | None = None
    code: str | None = None
    values: Mapping[str, ValueSeen] = field(default_factory=dict)
    logging_method: str | None = None


class AdviceKind(Enum):
    """What can be done about a recompile, by what changed."""

    BREAK_IN_CALLER = "break-in-caller"
    """A break makes the function ``name`` run eager, and so what it calls is compiled on its own."""
    VALUE_ACROSS_BREAK = "value-across-break"
    ATTRIBUTE = "attribute"
    """The attribute ``name`` of a library's object is None in the first call and ``value`` later."""
    ARGUMENTS = "arguments"
    """Which arguments are passed."""
    NUMBER_AS_INDEX = "number-as-index"
    FROZEN_PARAMETER = "frozen-parameter"
    PARAMETER = "parameter"
    GRADIENT = "gradient"
    """Whether the tensor ``name`` requires a gradient."""
    LEARNING_RATE = "learning-rate"
    """A compiled optimizer is compiled for a learning rate that is a Python number."""
    VIEW = "view"
    """The tensor ``name`` is a view of another one, or is none."""
    SIZE_0_OR_1 = "size-0-or-1"
    """A size that is compiled separately from all others."""
    SIZE_OF_POSITIONAL = "size-of-positional"
    SIZE_OF_PARAMETER = "size-of-parameter"
    SIZE = "size"


@dataclass(frozen=True, slots=True)
class RecompileAdvice:
    """Advice for one recompile.  ``dimension`` is that of a size that changed; ``path`` and ``line`` are those of a
    break; ``value`` is a literal."""

    kind: AdviceKind
    name: str = ""
    dimension: str = ""
    path: str = ""
    line: int = 0
    value: str = ""


@dataclass(frozen=True, slots=True)
class Recompile:
    """One time that a function was compiled again.  ``guard`` is what had to hold, ``subject`` what it is about;
    ``advice`` is None where only the rule has any; ``cause`` numbers, from 0, what they have in common: the same change
    at the same call; ``seconds`` is what compiling took, the backward included.  ``trigger`` is the call that met the
    guard, ``users_line`` the user's line that leads there, where that call or the function is not the user's."""

    rule: Rule | None
    function: str | None
    site: Site
    origin: Origin
    trigger: Caller | None
    guard: Demand
    subject: str
    old: str | Within | None
    new: str | None
    advice: RecompileAdvice | None
    compile_id: str
    cause: int
    users_line: Caller | None = None
    seconds: float = 0.0


class FrameStatus(str, Enum):
    """What became of a function that is not compiled code."""

    EAGER = "eager"
    """It runs as plain Python."""
    RAISED = "raised"
    """torch.compile raised."""
    PASSED_OVER = "passed-over"
    """Dynamo looked at it and found nothing to compile."""


@dataclass(frozen=True, slots=True)
class UncompiledFrame:
    """A function that was to be compiled and is not.  ``rest_only`` says that it is the part after a break;
    ``break_site`` is the break that caused it, where one did; ``over_limit`` says that it was recompiled too often;
    ``code`` is its first line.

    Of a failure, ``stack`` is the way to the line that could not be compiled, outermost first, and ``failed_at`` that
    line, with its text in ``failed_code``; None where torch does not tell it.
    """

    function: str
    site: Site
    origin: Origin
    status: FrameStatus
    rest_only: bool
    reason: Reason
    rule: Rule | None
    gb_type: str | None
    gb_id: str | None
    advice: str | None
    break_site: Site | None
    over_limit: bool
    count: int
    price: Price | None = None
    code: str | None = None
    stack: tuple[Caller, ...] = ()
    failed_at: Site | None = None
    failed_code: str | None = None


@dataclass(frozen=True, slots=True)
class EagerCalls:
    """Calls of something compiled in which no graph ran: ``calls`` of all ``of`` in which nothing was compiled.

    ``stance`` is torch's during the calls (``torch.compiler.set_stance``), ``caller`` the line of the first one.
    ``site`` is the head of the function; where that is torch's own, the line that asked for it to be compiled.
    ``reason`` is why it runs eager under the default stance; None under another one.
    """

    function: str
    site: Site
    origin: Origin
    calls: int
    of: int
    stance: str
    caller: Caller | None
    reason: Reason | None

    @property
    def intended(self) -> bool:
        """Whether the stance is there for these calls to run eager, so that the next ones are compiled."""
        return self.stance == EAGER_FIRST_STANCE


@dataclass(frozen=True, slots=True)
class CompileTarget:
    """A function or module that ``torch.compile`` was asked for, where, and with which arguments: ``settings`` are
    those beside the backend and ``fullgraph``, as Python writes them."""

    name: str
    caller: Caller | None
    attempted: bool
    backend: str | None
    fullgraph: bool
    settings: Mapping[str, str]


class RankTopic(Enum):
    """What ranks can do differently, with what is kept of each rank."""

    BREAKS = "breaks"
    """:class:`Times`."""
    FALLBACK = "fallback"
    """:class:`Fallback`."""
    RECOMPILES = "recompiles"
    """:class:`Times`."""
    STEPS = "steps"
    """How many graphs ran before each recompile: :class:`RunsBefore`."""
    EXPORTS = "exports"
    """What stands against exports: :class:`Times`."""
    ORDER = "order"
    """The order of recompiles: :class:`FunctionOrder`."""
    ALL_GRAPHS = "all-graphs"
    """:class:`GraphsMade`."""
    GRAPHS = "graphs"
    """Of one function: :class:`GraphsMade`."""


@dataclass(frozen=True, slots=True)
class Times:
    """How often it happened, with the values that a guard met."""

    number: int
    values: tuple[str | Within, ...] = ()


@dataclass(frozen=True, slots=True)
class Fallback:
    """What became of a function, and why; both None where it did not fall back to eager."""

    status: FrameStatus | None = None
    reason: Reason | None = None


@dataclass(frozen=True, slots=True)
class RunsBefore:
    """The number of runs of graphs before each of some recompiles."""

    numbers: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class FunctionOrder:
    """The functions that were recompiled, in order; None for one without a name."""

    functions: tuple[str | None, ...]


@dataclass(frozen=True, slots=True)
class GraphsMade:
    """A number of graphs with the operations of each, or those of all if they are many."""

    number: int
    ops: tuple[int, ...]


RankShare = Times | Fallback | RunsBefore | FunctionOrder | GraphsMade


@dataclass(frozen=True, slots=True)
class RankDifference:
    """Something that the ranks did not do alike, and what each did.  ``name`` is that of a function, or the rule or the
    type of a break; ``subject`` is what recompiles are about."""

    topic: RankTopic
    site: Site | None
    by_rank: Mapping[int, RankShare]
    name: str | None = None
    subject: str = ""


class EndingKind(Enum):
    """What is known of the end of a rank."""

    ENDED = "ended"
    """The exit status is known, or None: not recorded."""
    RUNNING = "running"
    KILLED_WITH_US = "killed-with-us"
    NO_RECORDING = "no-recording"
    NO_LOG = "no-log"


@dataclass(frozen=True, slots=True)
class RankEnding:
    """How a rank ended.  Where a job fails: after how many seconds, and whether it was the first to end."""

    kind: EndingKind
    status: int | None = None
    seconds: float | None = None
    is_first: bool = False


@dataclass(frozen=True, slots=True)
class RankReport:
    """The ranks that were recorded, of ``world_size``; how each ended, and where they differ.  A rank that should have
    left a recording and has not is named in ``endings`` alone."""

    world_size: int
    ranks: Sequence[int]
    endings: Mapping[int, RankEnding]
    differences: Sequence[RankDifference]


@dataclass(frozen=True, slots=True)
class Explanation:
    """One run.  ``status`` is the exit status, negative for the signal that ended the program; ``seconds`` its wall
    time, ``compile_seconds`` the part of it spent compiling.  ``entries`` counts the compilations that a call of
    a compiled function asked for: without breaks, each gives one graph.  ``libraries`` are the versions of those that
    were traced, by the names that they are imported by.  ``traced`` holds, by file, the lines
    that operations of graphs come from.  ``began`` is when the recording began, in seconds since the epoch;
    ``timelines`` tell of each rank when it compiled and ran what, and are empty without ranks.  Of a run that
    only torch's own trace tells of, ``trace`` names its log, ``argv`` is empty, and ``status`` and ``seconds``
    are None."""

    argv: tuple[str, ...]
    status: int | None
    seconds: float | None
    torch: str
    python: str
    devices: tuple[str, ...]
    torch_imported: bool
    disabled_by: str | None
    breaks: Sequence[BreakSite]
    recompiles: Sequence[Recompile]
    frames: Sequence[UncompiledFrame]
    graphs: Sequence[Graph]
    targets: Sequence[CompileTarget]
    entries: int
    compile_seconds: float
    notices: Sequence[AnyNotice]
    compiles: Sequence[CompiledFrame] = ()
    specialisations: Sequence[Specialisation] = ()
    cudagraph_skips: Sequence[CudaGraphSkip] = ()
    cudagraph_recordings: Sequence[CudaGraphRecording] = ()
    peak_memory: Sequence[PeakMemory] = ()
    autograd: Sequence[AutogradCapture] = ()
    calls: Sequence[Calls] = ()
    eager_calls: Sequence[EagerCalls] = ()
    precompiled: Sequence[Precompiled] = ()
    exports: Sequence[Export] = ()
    export_failures: Sequence[ExportFailure] = ()
    values: Sequence[FunctionValues] = ()
    runs: Sequence[RunTotals] = ()
    ranks: RankReport | None = None
    processes: int = 1
    traced: Mapping[str, Sequence[int]] = field(default_factory=dict)
    trace: str | None = None
    began: float | None = None
    timelines: Mapping[int, Timeline] = field(default_factory=dict)
    libraries: Mapping[str, str] = field(default_factory=dict)

    @property
    def device(self) -> str | None:
        """The hardware that graphs ran on, as ``2 × NVIDIA H200``; None if no graph reports it."""
        named = Counter(found[1] if (found := _NAMED_DEVICE.search(device)) else "" for device in self.devices)
        plain = {device.partition(":")[0] for device in self.devices if not _NAMED_DEVICE.search(device)}
        words = [f"{count} × {name}" for name, count in named.items() if name]
        # Scalars that stay on the CPU say nothing where there is an accelerator.
        return ", ".join(words or sorted(plain)) or None

    @property
    def break_events(self) -> int:
        return sum(site.count for site in self.breaks)

    @property
    def eager_frames(self) -> int:
        return sum(frame.status is FrameStatus.EAGER for frame in self.frames)

    @property
    def ops(self) -> int:
        return sum(graph.ops for graph in self.graphs)

    @property
    def causes(self) -> int:
        """How many distinct causes the recompiles have."""
        return len({recompile.cause for recompile in self.recompiles})
