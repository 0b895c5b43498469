"""What the compiler made in a run, and what that cost: the objects of which an explanation's second half is made.

All times are seconds unless their name says otherwise.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum

from breakscan.explain.callers import Caller
from breakscan.explain.time_tree import TimeNode
from breakscan.model.findings import Origin, Site
from breakscan.model.observations import ValueSeen
from breakscan.record.parsers.graphs import AutogradChange
from breakscan.record.parsers.guards import Demand, TensorDemand
from breakscan.record.records import RecordingCause


class KernelKind(str, Enum):
    """Where a kernel comes from."""

    TRITON = "triton"
    CPP = "cpp"
    EXTERN = "extern"
    """A library's, such as a matrix product."""
    FALLBACK = "fallback"
    """An operator that Inductor has no kernel for: torch's own eager one, or one of the program's own."""
    OTHER = "other"
    """Generated in another language, such as CUTLASS or Metal."""


@dataclass(frozen=True, slots=True)
class Kernel:
    """A kernel of a graph: how often one run of the graph calls it, the ATen operators in it, the lines that they
    come from."""

    name: str
    kind: KernelKind
    calls: int
    operators: tuple[str, ...]
    lines: tuple[Site, ...]


@dataclass(frozen=True, slots=True)
class SavedValue:
    """What a forward keeps for its backward: its type and name, its bytes where its sizes are known, the line that
    computed it.  An input of the graph, such as a parameter, is in memory anyway."""

    value: str
    bytes: int | None
    line: Site | None
    is_input: bool


@dataclass(frozen=True, slots=True)
class Generated:
    """What the backend made of a graph, for one phase: ``forward``, ``backward`` or ``inference``.

    ``saved`` are the values that a forward keeps for its backward; ``bytes_moved`` is Inductor's estimate for one run.
    """

    phase: str
    ops: int | None
    saved: tuple[SavedValue, ...]
    kernels: tuple[Kernel, ...]
    bytes_moved: int | None
    path: str | None
    code: str | None


@dataclass(frozen=True, slots=True)
class Graph:
    """A graph that was compiled: its operations, the devices of its inputs in words, the lines it was traced from,
    the break that ended it, and what running it took, on the host and, where timed, on the device.

    ``number`` counts the graphs of a run from 0.
    """

    number: int
    compile_id: str
    function: str | None
    site: Site | None
    ops: int
    devices: tuple[str, ...]
    lines: tuple[Site, ...]
    ended_by: Site | None
    runs: int | None
    seconds: float | None
    device_seconds: float | None
    compile_seconds: float | None
    generated: tuple[Generated, ...]
    split_by_ddp: tuple[int, ...]


class MissKind(str, Enum):
    """Why a cache had nothing."""

    NEW = "new"
    """Nothing was stored under the key, and nothing was looked up before that could be compared."""
    GUARDS = "guards"
    """What is stored holds for other sizes."""
    CHANGED = "changed"
    """The key is another than that of an earlier lookup for the same function."""
    LOST = "lost"
    """The key is that of an earlier lookup for the same function, after which nothing was stored."""


@dataclass(frozen=True, slots=True)
class KeyChange:
    """A part of a key that is another than before; the values are None where they are too long to be kept."""

    name: str
    old: str | None
    new: str | None


@dataclass(frozen=True, slots=True)
class CacheMiss:
    """Why a cache had nothing: the ``guards`` that did not hold, or the ``changes`` since the lookup for ``than``."""

    kind: MissKind
    guards: str | None = None
    than: str | None = None
    changes: tuple[KeyChange, ...] = ()


@dataclass(frozen=True, slots=True)
class CacheUse:
    """A compiler cache and what it had: ``hit``, ``miss`` with why, or ``bypass`` with the reason."""

    cache: str
    outcome: str
    reason: str | None
    miss: CacheMiss | None = None


@dataclass(frozen=True, slots=True)
class GuardLine:
    """A guard of a compiled function, and the line that asked for it."""

    kind: str
    demand: Demand | TensorDemand
    site: Site | None


@dataclass(frozen=True, slots=True)
class FunctionValues:
    """What the names of a function were when it started, in how many calls.  ``compiled`` says that Dynamo started
    there, at least once, and did not only follow a call."""

    site: Site
    function: str
    calls: int
    compiled: bool
    values: Mapping[str, ValueSeen]


@dataclass(frozen=True, slots=True)
class CompiledFrame:
    """One compilation of a function: when it began, in seconds since the recording did, how long it took, how long its
    backward, where that was compiled later, and the phases of both, which overlap; under which guards it holds, and
    what checking them takes at each call.  ``guard_microseconds`` is what torch measured: once, with cold caches.

    ``rest_only`` says that it is the part after a break; ``failed`` what ended it without compiled code.  ``time`` is
    what it spent its time on, with its backward, and with what its graphs did when they first ran; ``kernel_seconds``
    what the slowest Triton kernels took to compile, several at a time.
    """

    compile_id: str
    function: str
    site: Site
    origin: Origin
    rest_only: bool
    at: float
    seconds: float
    backward_seconds: float
    phases: Mapping[str, float]
    guards: Sequence[GuardLine]
    guard_count: int | None
    guard_seconds: float | None
    guard_microseconds: float | None
    caches: Sequence[CacheUse]
    restarts: Sequence[str]
    failed: str | None
    time: Sequence[TimeNode] = ()
    kernel_seconds: Mapping[str, float] = field(default_factory=dict)


class ConstantReason(Enum):
    """Why a dynamic size became a constant."""

    NUMBER = "number"
    """The code needs it as a Python number."""
    COMPARED = "compared"
    """The code compares it with a number."""
    OTHER = "other"


@dataclass(frozen=True, slots=True)
class Specialisation:
    """A dynamic size that the code turned into a constant: what it was the size of, its value, and where."""

    compile_id: str
    sources: tuple[str, ...]
    value: str
    reason: ConstantReason
    site: Site | None
    function: str | None


@dataclass(frozen=True, slots=True)
class CudaGraphSkip:
    """Why graphs did not run as CUDA graphs, with the line that torch blames, and how often that was so."""

    reason: str
    site: Site | None
    compile_ids: tuple[str, ...]
    count: int


@dataclass(frozen=True, slots=True)
class MovedValue:
    """An input of a graph that lies elsewhere than before: AOTAutograd's name for it, and the line that uses it."""

    name: str
    line: Site | None


@dataclass(frozen=True, slots=True)
class CudaGraphRecording:
    """How often the graphs of a function were recorded as CUDA graphs for one cause, how long that took, and by how
    many bytes it made the memory grow that torch reserves.  ``sizes`` are the dynamic ones of each recording, where
    they are the cause; ``moved`` are inputs that lie elsewhere, of ``moved_in_all`` at most."""

    function: str | None
    site: Site | None
    phase: str
    cause: RecordingCause
    count: int
    seconds: float
    bytes: int
    sizes: tuple[tuple[int, ...], ...]
    moved: tuple[MovedValue, ...]
    moved_in_all: int


@dataclass(frozen=True, slots=True)
class PeakMemory:
    """The most bytes that tensors took on a device at a time, and that torch had reserved for them."""

    device: str
    allocated: int
    reserved: int


@dataclass(frozen=True, slots=True)
class AutogradCapture:
    """A backward pass that compiled autograd captured: the line that called it, and why no earlier capture served."""

    compile_id: str
    ops: int
    caller: Caller | None
    reasons: tuple[AutogradChange, ...]


@dataclass(frozen=True, slots=True)
class LongPass:
    """A pass that took much longer than the others: its seconds, and when it began, in seconds since the recording
    began.  ``for_rank`` is the rank that compiled meanwhile: this one waited for it."""

    seconds: float
    at: float
    for_rank: int | None = None


@dataclass(frozen=True, slots=True)
class Precompiled:
    """A function whose compiled code was loaded, and the line that asked torch.compile for it."""

    function: str
    site: Site
    caller: Caller | None


@dataclass(frozen=True, slots=True)
class Price:
    """What a break costs each time that the program runs through it: the time between the graph before it and the
    next one, on the host and, where timed, on the device, and whether the host waits for the device there; and what
    it cost once, to compile the code after it.

    ``host_seconds`` and ``device_seconds`` are medians; half of the passes took between ``low_seconds`` and
    ``high_seconds`` on the host.  ``longest`` is None where no pass stands out.

    Where the host waits for the device, it waits for work that has to be done anyhow: then the break costs what the
    device does not spend on graphs there.
    """

    passes: int
    host_seconds: float
    device_seconds: float | None
    waits: bool
    compile_seconds: float
    low_seconds: float = 0.0
    high_seconds: float = 0.0
    longest: LongPass | None = None

    @property
    def is_on_device(self) -> bool:
        """Whether the device's time is what the break costs."""
        return self.waits and self.device_seconds is not None

    @property
    def seconds(self) -> float:
        """What one pass costs."""
        if self.waits and self.device_seconds is not None:
            return min(self.device_seconds, self.host_seconds)
        return self.host_seconds

    @property
    def in_all(self) -> float:
        """Seconds over all passes; 0 for a single one, which may have been disturbed."""
        return self.passes * self.seconds if self.passes > 1 else 0.0


@dataclass(frozen=True, slots=True)
class Calls:
    """The steady calls of something compiled: those in which nothing was compiled.  ``gap_seconds`` is the time
    after breaks, ``outside_seconds`` all that was spent outside graphs.  All but ``total_seconds``, which was measured,
    are medians times the number of calls: waiting once for something is not in them."""

    name: str
    calls: int
    seconds: float
    graph_seconds: float
    gap_seconds: float
    total_seconds: float = 0.0

    @property
    def outside_seconds(self) -> float:
        return max(0.0, self.seconds - self.graph_seconds)


@dataclass(frozen=True, slots=True)
class RunTotals:
    """One run of a graph on the timeline, in seconds since the recording began."""

    graph: int
    at: float
    seconds: float
