"""The records of a run: strings and numbers only, never a tensor or a frame, so that recording changes no lifetime.
Times are ``time.perf_counter`` seconds of the process that wrote the record; ``ProcessStarted`` ties that clock to the
calendar.  A compile id is Dynamo's, such as ``0/1``."""

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields, is_dataclass, replace
from typing import TYPE_CHECKING, Any, TypeVar

from breakscan.model.observations import ValueSeen

if TYPE_CHECKING:
    from typing_extensions import dataclass_transform
else:

    def dataclass_transform(**_):
        return lambda kind: kind


T = TypeVar("T")
KINDS: dict[str, type[Any]] = {}  # the kinds of records, by the names that recordings have for them


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
@dataclass(frozen=True)
class Record:
    """One datum of a run; each subclass is a kind, and a frozen dataclass."""

    def __init_subclass__(cls) -> None:
        KINDS[cls.__name__] = dataclass(frozen=True)(cls)


def mapped(value: T, change: Callable[[Any], Any]) -> T:
    """A record, or a part of one, with each dataclass in it replaced by what ``change`` returns, if that differs."""
    new: Any = value
    if isinstance(value, tuple):
        items = tuple(mapped(item, change) for item in value)
        new = items if any(item is not old for item, old in zip(items, value, strict=True)) else value
    elif is_dataclass(value) and not isinstance(value, type):
        new = change(value)
        if new is value:
            held = {one.name: getattr(value, one.name) for one in fields(value)}
            changed = {name: part for name, old in held.items() if (part := mapped(old, change)) is not old}
            new = replace(value, **changed) if changed else value
    return new  # type: ignore[no-any-return]


@dataclass(frozen=True, slots=True)
class StackFrame:
    """A place in a stack.  Lines count from 1, columns in UTF-8 bytes from 0, as CPython has them; None if unknown."""

    path: str
    line: int
    name: str
    column: int | None = None
    end_column: int | None = None


@dataclass(frozen=True, slots=True)
class Code:
    path: str
    line: int
    name: str


@dataclass(frozen=True, slots=True)
class CodeLine:
    """A line that a graph was traced from, and its text at that time: a graph out of a cache was traced earlier."""

    place: StackFrame
    code: str


class ProcessStarted(Record):
    """The compiler was loaded in a process.  ``disabled_by`` names the variable that switches it off.  ``rank`` and
    ``world_size`` are those that torchrun sets.  ``clock`` is ``perf_counter`` at ``time``, seconds of the epoch."""

    pid: int
    parent_pid: int = 0
    argv: tuple[str, ...] = ()
    rank: int | None = None
    world_size: int | None = None
    time: float = 0.0
    clock: float = 0.0
    torch: str = ""
    python: str = ""
    torch_folder: str = ""
    standard_library: str = ""
    disabled_by: str | None = None
    profile_kept: bool = False


class ProcessForked(Record):
    """A process was forked off one that records, and records too."""

    pid: int
    parent_pid: int


class RankSeen(Record):
    """The process became a rank of a process group that its environment does not name."""

    rank: int
    world_size: int


class HookInstalled(Record):
    """The installed torch has what a hook needs, or lacks it: ``without`` is the clause on what is missing then."""

    name: str
    available: bool
    without: str = ""


class HookFailed(Record):
    """A hook of ours raised; the user's program did not notice.  ``without`` as in :class:`HookInstalled`."""

    name: str
    error: str
    without: str


class CompileCalled(Record):
    """``torch.compile`` was asked for something: its name, its code, and the stack of the call.  ``key`` is by which
    ``CallsRan`` names it; ``backend`` as the program named it.  ``settings`` are other arguments of
    ``torch.compile``, as Python writes them: ``dynamic``, ``mode``, ``options``.  ``again`` says that it had been asked
    for the same object, or the same code, before."""

    target: str
    code: Code | None
    stack: tuple[StackFrame, ...]
    key: int
    backend: str | None
    fullgraph: bool
    settings: dict[str, str]
    again: bool = False


class CompileAsked(Record):
    """``--compile`` asks for a name, as ``module:name``."""

    target: str


class CompileMet(Record):
    """The outcome for a name that ``--compile`` asks for: compiled, or the ``problem``.  ``names`` may be meant
    instead."""

    target: str
    problem: str | None
    names: tuple[str, ...]


class PackageInstalled(Record):
    """Functions whose compiled code was made by an earlier process, and the stack that asked for it."""

    codes: tuple[Code, ...]
    stack: tuple[StackFrame, ...]


class CompileStarted(Record):
    """Dynamo starts on a frame: the stack above it, outermost first, and its code.  ``in_thread`` says that another
    thread than the main one calls it, with settings of its own (from torch 2.12 on), if that is known."""

    compile_id: str
    code: Code
    stack: tuple[StackFrame, ...]
    at: float
    in_thread: bool = False


class CompileTimed(Record):
    """The seconds that one frame took to compile, and those of its ``stages`` (``dynamo``, ``aot_autograd``,
    ``inductor``), each without the later ones in it; ``ops`` of the graph that it gave, None without one; ``failed``
    the type and text of what ended it.  ``step`` is how often what is called most of all that is compiled had been
    called by then, with the call that it was in; None where calls are not counted."""

    compile_id: str
    seconds: float
    backward: bool
    ops: int | None
    at: float
    stages: dict[str, float]
    guards: int | None
    restarts: tuple[str, ...]
    failed: str | None
    step: int | None = None


class FrameEnded(Record):
    """A frame that did not become compiled code: by an exception, or by a silent skip.  ``raised`` says that the
    exception reaches the user, ``limit`` that it is the recompile limit, ``set_aside`` that it would have reached the
    user, had ``--keep-going`` not set ``fullgraph=True`` aside, ``compilers`` that it began as an exception of the
    compiler's own, which plain code cannot raise."""

    frame: Code
    error: str | None
    text: str
    stack: tuple[StackFrame, ...]
    raised: bool
    limit: bool
    set_aside: bool = False
    compilers: bool = False


class BreakSeen(Record):
    """A graph break.  ``stack`` is that of the traced code, innermost last; ``frame`` is what was compiled;
    ``skipped`` says that the frame falls back to eager, ``raised`` that torch.compile raises, ``set_aside`` that it
    would raise, had ``--keep-going`` not set ``fullgraph=True`` aside, ``nested`` that nested graph breaks are on."""

    compile_id: str | None
    frame: Code
    text: str
    stack: tuple[StackFrame, ...]
    skipped: bool
    raised: bool
    set_aside: bool = False
    nested: bool = False


@dataclass(frozen=True, slots=True)
class FailedPart:
    """A guard that failed as well, and the value that it met, in words."""

    text: str
    new: str | None


@dataclass(frozen=True, slots=True)
class FailedGuard:
    """The guard of one compiled version that did not hold.  ``executed`` is the number of guards checked up to
    it, ``new`` the value that it met, in words, and ``old`` the one that it asks for, where the text has none.
    ``name`` is that of the variable, where the text has the function that holds it; ``also`` are others that failed."""

    compile_id: str
    text: str
    executed: int
    new: str | None
    stack: tuple[StackFrame, ...]
    old: str | None = None
    name: str | None = None
    also: tuple[FailedPart, ...] = ()


class RecompileSeen(Record):
    """A frame is compiled again, since no version of it fits.  ``stack`` is that of the call; ``cut`` says that its two
    innermost frames are missing, as in torch's trace.  ``objects`` numbers the objects among the function's variables:
    equal for the same object.  ``stored_as`` are the variables that get the value of the call at which the graph
    broke, or its parts; ``past_limit`` says that the limit forbids another version.  ``runs`` is how often graphs have
    run in the process until then, where that is counted."""

    compile_id: str | None
    frame: Code
    guards: tuple[FailedGuard, ...]
    stack: tuple[StackFrame, ...]
    cut: bool = False
    objects: Mapping[str, int] = field(default_factory=dict)
    stored_as: tuple[str, ...] = ()
    past_limit: bool = False
    runs: int | None = None


@dataclass(frozen=True, slots=True)
class Guard:
    """A guard of a compiled frame: its kind (``TENSOR_MATCH``), what is checked, the line of the program that asked for
    it, where torch says, and Dynamo's name for what it is about, such as ``L['x']``."""

    kind: str
    text: str
    line: StackFrame | None
    subject: str | None


class GuardsBuilt(Record):
    """The guards of a compiled frame, the seconds that checking all of them takes, and the objects among its variables
    (see :class:`RecompileSeen`).  The structured trace names neither the frame nor the lines nor that time."""

    compile_id: str | None
    frame: Code | None
    guards: tuple[Guard, ...]
    check_seconds: float | None = None
    objects: Mapping[str, int] = field(default_factory=dict)


class ShapeSpecialised(Record):
    """A size that was dynamic became a constant: its symbol, the inputs that have it, its value, and the traced
    stack that needed it.  ``asked_by`` names what asked for it in torch: ``guard_int``, ``guard_bool``, ``expect_true``
    (an operation whose operands must match)."""

    compile_id: str
    symbol: str
    sources: tuple[str, ...]
    value: str
    reason: str
    asked_by: str | None
    stack: tuple[StackFrame, ...]


@dataclass(frozen=True, slots=True)
class GraphNode:
    """An operation of a graph: the node's name, the line that it was traced from, and the name of what it calls."""

    name: str
    line: StackFrame | None
    operation: str = ""


@dataclass(frozen=True, slots=True)
class RepeatedLine:
    """A line that was traced through for ``ops`` operations of a graph.  What it first led to came ``rounds`` times."""

    place: StackFrame
    ops: int
    rounds: int


class GraphCompiled(Record):
    """A graph went to the backend and came back: its operations, and the devices of its inputs in words.  ``graph``
    numbers the graphs of a process from 0.  ``ended_by`` is the traced stack of the break that ended it; empty where
    the function ended.  ``seconds`` is what the backend took.  ``repeated`` are lines traced through often."""

    compile_id: str | None
    frame: Code
    ops: int
    devices: tuple[str, ...]
    graph: int
    nodes: tuple[GraphNode, ...]
    ended_by: tuple[StackFrame, ...]
    at: float
    seconds: float
    repeated: tuple[RepeatedLine, ...] = ()


@dataclass(frozen=True, slots=True)
class PythonLine:
    """A line of what Dynamo made of a function, as Python.  ``line`` is that of the program's own operation that it
    runs; ``graph`` says that it calls the graph; ``resumes`` names the code of the rest, at the line ``goes_on``."""

    text: str
    depth: int
    line: int | None = None
    graph: bool = False
    resumes: str | None = None
    goes_on: int | None = None


class PythonMade(Record):
    """The Python that runs in place of a function; ``goes_on`` is the first line of the rest of one."""

    compile_id: str | None
    goes_on: int | None
    lines: tuple[PythonLine, ...]


class DdpSplit(Record):
    """DistributedDataParallel split a graph at its buckets; ``ops`` of each part.  Torch reports one part at a time."""

    compile_id: str
    ops: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class AutogradNode:
    """A value of AOTAutograd's graph: its name, its operator (``aten.relu.default``), the number of its line there."""

    name: str
    operator: str | None
    line: int | None


class AutogradGraph(Record):
    """A graph as AOTAutograd made it.  ``phase`` is ``forward``, ``backward`` or ``inference``; ``saved`` are the types
    and names of the values that a forward keeps for its backward, as ``f32[8, 16] relu``."""

    compile_id: str
    phase: str
    ops: int
    nodes: tuple[AutogradNode, ...]
    lines: tuple[CodeLine, ...]
    saved: tuple[str, ...] = ()


class CodeGenerated(Record):
    """The code that Inductor wrote for a graph.  ``phase`` as in :class:`AutogradGraph`, None where torch does not
    say.  Of very long code, ``code`` leaves parts out, and says so."""

    compile_id: str
    phase: str | None
    path: str
    code: str


class CacheLooked(Record):
    """A compiler cache was asked: ``cache`` is ``fx_graph`` or ``aotautograd``, ``outcome`` ``hit``, ``miss``,
    ``disabled`` or ``bypass``, and why.  ``guards`` are those of what has the key, if they did not hold.
    ``parts`` are those of the key of something that was not stored, each with the start of its hash: rows of the graph
    by ``%`` and the names of their values, and what else there is by its name in torch."""

    compile_id: str
    cache: str
    outcome: str
    reason: str | None
    guards: str | None = None
    parts: dict[str, str] = field(default_factory=dict)


class CudaGraphSkipped(Record):
    """A graph does not run as a CUDA graph, and why."""

    compile_id: str | None
    reason: str


class ExportEnded(Record):
    """A call of ``torch.export.export`` (``way`` is ``export``), ``draft_export``, AOTInductor (``aot_inductor``) or
    ``aot_compile`` of a compiled function, by the program itself, not by another such call.  ``target`` is what was
    exported, ``code`` that of its ``forward``, ``stack`` that of the call, ``ops`` the operations of the result.
    ``error`` is the type of the exception that ended it, ``text`` its text, ``failed_at`` the stack below the call."""

    way: str
    target: str
    code: Code | None
    stack: tuple[StackFrame, ...]
    strict: bool | None
    at: float
    seconds: float
    ops: int | None
    error: str | None
    text: str
    failed_at: tuple[StackFrame, ...]


DEFAULT_STANCE = "default"  # the default of ``torch.compiler.set_stance``: compiles where it must
EAGER_FIRST_STANCE = "eager_then_compile"  # runs each first call eager, to see what changes
DISPATCH_MODE = "dispatch-mode"  # the stance under a ``TorchDispatchMode``; its class's name follows, after a colon


@dataclass(frozen=True, slots=True)
class Usual:
    """The usual time of something, in seconds: the median of the last times, and the quartiles.  One time that was
    disturbed, as by a wait for another process, does not change them."""

    seconds: float
    low: float
    high: float


NO_TIME = Usual(0.0, 0.0, 0.0)


def time_covered(spans: Iterable[tuple[float, float]]) -> float:
    """The time in which at least one of the spans lasts."""
    total, until = 0.0, -math.inf
    for start, end in sorted(spans):
        total += max(0.0, end - max(start, until))
        until = max(until, end)
    return total


class GraphRan(Record):
    """The number of runs of a graph until now, and their seconds on the host.  ``device_seconds`` is the sum over
    ``timed_on_device`` of the runs.  ``passes`` counts the gaps between its end and the start of the next graph, or the
    end of the call: eager code, and the compiled code's own overhead.  Gaps in which something was compiled are left
    out.  ``gap_on_device`` is of those ``gaps_on_device``.  The last record of a graph counts."""

    graph: int
    runs: int
    seconds: float
    timed_on_device: int
    device_seconds: float
    passes: int = 0
    gap: Usual = NO_TIME
    gaps_on_device: int = 0
    gap_on_device: Usual = NO_TIME


class CallsRan(Record):
    """Outermost calls of what ``torch.compile`` gave, those left out in which something was compiled.  ``key`` as in
    ``CompileCalled``; ``in_graphs`` and ``in_gaps`` (after graphs that a break ended) are parts of ``usual``.
    ``outside`` is what ``timed_on_device`` calls spent on their device outside both.  The last of a key counts."""

    key: int
    calls: int
    seconds: float
    usual: Usual
    in_graphs: Usual
    in_gaps: Usual
    timed_on_device: int = 0
    outside: Usual = NO_TIME


class EagerCallsRan(Record):
    """The calls of ``CallsRan`` in which no graph ran.  ``stance`` is torch's during the calls, as
    ``torch.compiler.set_stance`` names it; ``stack`` is that of the first one.  The last record of a key and a stance
    counts.  ``values`` counts calls past the limit by the value of ``about`` for which there is no version."""

    key: int
    stance: str
    calls: int
    stack: tuple[StackFrame, ...]
    values: Mapping[str, int] = field(default_factory=dict)
    about: str = ""


@dataclass(frozen=True, slots=True)
class HostCall:
    """A call into torch or a library: how often a step makes it, its own seconds on the host in a step."""

    name: str
    calls: float
    seconds: float


class StepsProfiled(Record):
    """Where the time of a step goes, by torch.profiler: the means of ``steps`` steps from one call of what has the key
    to the next.  ``seconds`` is the median of a step before, ``profiled`` that of one under the profiler.  Of the
    host's time, ``graphs`` runs what Inductor compiled, ``eager`` single operations, ``entering`` guards and what is
    around graphs, and ``waiting`` is for the device.  ``device`` is the device's; ``calls`` took most of the host's."""

    key: int
    steps: int
    seconds: float
    profiled: float
    graphs: float
    eager: float
    entering: float
    waiting: float
    device: float | None
    calls: tuple[HostCall, ...]


class PlainCallsRan(Record):
    """Calls that the program made of the ``forward`` (``code``) of a module (``target``) from one line, although Dynamo
    has traced it: ``calls`` of them, or where Python does not count them ``seconds`` that they took, about.  Or
    ``method``, one of the module's own, was taken from what torch.compile made of it; how often it was called is not
    known.  ``stack`` is that of the first one.  The last record of a function and a line counts.  ``is_copy`` says that
    not the module was traced, but the one that it is a copy of."""

    target: str
    code: Code
    stack: tuple[StackFrame, ...]
    calls: int
    seconds: float
    method: str | None = None
    is_copy: bool = False


class StateKeysSeen(Record):
    """A state dict with ``keys`` keys of which some begin with ``_orig_mod.`` was ``saved``; or one was ``loaded`` into
    a module that has no such names, or the other way round.  ``fits`` says that some keys are those of the module."""

    way: str
    keys: int
    fits: bool
    stack: tuple[StackFrame, ...]


class LateHookSeen(Record):
    """A hook (``hook``, the name of its function) that was registered on a module of this class after it was traced as
    a part of something compiled, whose graphs ran ``runs`` times from then on without it."""

    target: str
    hook: str
    stack: tuple[StackFrame, ...]
    runs: int


class GraphRaised(Record):
    """A compiled graph raised when it ran, for the first time: the type of the exception and its text.  Of a backward,
    ``graph`` is None.  ``compilers`` says that code of the compiler raised it, or code that it generated."""

    graph: int | None
    error: str
    text: str
    stack: tuple[StackFrame, ...]
    compilers: bool = False


class FileSeen(Record):
    """A file whose functions Dynamo traced: its absolute path, and the digest of its content when the first was."""

    path: str
    digest: str


class LibrarySeen(Record):
    """A library of which Dynamo traced a function, by the name that it is imported by."""

    name: str
    version: str


class ValuesSeen(Record):
    """The values that the names of a function had when it started, each time that Dynamo traced it until now.
    ``number`` numbers the functions of a process from 0.  ``qualname`` is None where Python does not say (3.10).
    ``inlined`` says that it was only traced as a part of others.  The last record of a function counts."""

    number: int
    code: Code
    qualname: str | None
    names: dict[str, ValueSeen]
    inlined: bool


class ValuesMet(Record):
    """The functions, by their numbers, that Dynamo traced in a compile."""

    compile_id: str
    functions: tuple[int, ...]
