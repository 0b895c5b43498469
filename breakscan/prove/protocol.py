"""The messages between the parent process and a worker process.

A command is a public method of an object that the worker serves: the parent names it (``worker.ask(CallRuns.eager,
…)``), and its arguments and its result are pickled: they hold nothing of torch, which the parent does not import."""

import ast
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from enum import Enum
from pathlib import Path

CompileOption = str | int | float | bool | None
"""The value of a keyword argument of ``torch.compile``, or of an option of a backend."""


CONFIGURATIONS = {"dynamo": "torch._dynamo.config", "inductor": "torch._inductor.config"}
"""The modules of the compiler's configurations, by the first part of the key of a setting."""


class StepKind(str, Enum):
    """The way in which a timed step runs."""

    COMPILED = "compiled"
    EAGER = "eager"


class Stage(str, Enum):
    """Where a variant of the program failed, or why it was not measured."""

    DYNAMO = "Dynamo"
    AOT_AUTOGRAD = "AOTAutograd"
    DECOMPOSITIONS = "decompositions"
    INDUCTOR = "Inductor"
    BACKEND = "the backend"
    RUN_TIME = "run time"
    RESULTS = "results"
    RECOMPILING = "recompiling"
    NOT_RUN = "not run"


@dataclass(frozen=True)
class WorkerInput:
    """The input of a worker process.  ``probes`` says that the outcomes of tests in the texts of ``overlay`` are
    recorded, and that the program goes on for a while after the captured calls, to see what its later calls have."""

    argv: tuple[str, ...]
    recording: Path
    cache: Path
    overlay: dict[str, str]
    probes: bool
    settings: dict[str, object]
    calls: int
    units: bool = False
    """The callables that are asked for are captured, whatever the program compiles of them."""
    whole: "RunRequest | None" = None
    """The program is run as a whole, and no calls are captured."""


@dataclass(frozen=True)
class LoopSite:
    """A loop of the program, by its file and its line there."""

    path: str
    line: int


@dataclass(frozen=True)
class CallSite:
    """A call of the program, by its file, its line there and the code of its function, which is empty for any."""

    path: str
    line: int
    function: str


@dataclass(frozen=True)
class RunRequest:
    """A run of the whole program.  Without ``loops``, those around its compiled calls are looked for; else their steps
    are timed.  Of what ``calls`` return, each with its place for people, parts are kept.  It is stopped after
    ``seconds`` from the first step, without those of compiling, or where ``stop`` says: the number of a loop, and its
    iterations until then.  ``graphs_only`` asks for graphs that Inductor does not compile, and for the values of each
    step."""

    loops: tuple[LoopSite, ...] = ()
    calls: Mapping[CallSite, str] = field(default_factory=dict)
    seconds: float = 3600.0
    stop: tuple[int, int] | None = None
    eager: bool = False
    graphs_only: bool = False


@dataclass(frozen=True)
class BlockTime:
    """The seconds of a step, and how many compiles started while it, or a block of such steps, ran.  ``disturbed`` says
    that other programs had the cores that it needed, so that its time says little."""

    seconds: float
    compiles: int
    disturbed: bool = False


@dataclass(frozen=True)
class RunReport:
    """A run of the whole program.  ``found`` are the loops around compiled calls, the outermost first, and ``calls``
    those calls and the ones that lead to them, where they were looked for; ``loops`` has the iterations of each that is
    timed; ``run_seconds`` is the time from the first step to the last.  ``stop`` is where the program was stopped, None
    where it was not; ``cuda`` says that it uses a GPU; ``blocks`` and ``inner`` modules are those of each module that
    it compiles; ``weights_change``: between calls of what is compiled, tensors that it reaches get other values."""

    found: tuple[LoopSite, ...]
    loops: tuple[tuple[BlockTime, ...], ...]
    run_seconds: float
    stop: tuple[int, int] | None
    memory_bytes: int | None
    cuda: bool
    backward: bool
    blocks: "tuple[tuple[ModulePart, ...], ...]"
    inner: "tuple[tuple[ModulePart, ...], ...]"
    files: tuple[str, ...]
    """The files of the user's own modules that were loaded."""
    weights_change: bool = False
    calls: tuple[CallSite, ...] = ()


IN_STEP = " in step "
"""A part of the paths of values that a loop holds while it runs, which it does not where it is compiled."""
OF_CALL = " of call "
"""A part of the paths of what calls return: ``output of call 4 of model() at train.py:12``."""
FLOAT = "float"
"""The dtype of Python's floats."""


@dataclass(frozen=True)
class Failure:
    """A command or a call that failed: the stage, and the exception as text."""

    stage: Stage
    text: str


CallStart = dict[tuple[str, str], str]
"""The values before a first call, by kind (``values``, ``generators``, ``plains``) and name: digests, or texts."""


@dataclass(frozen=True)
class CapturedCalls:
    """The number of captured calls of a callable, their modes in words, and whether their backward pass is run.
    ``place`` is where the program keeps what was compiled: a module and a name in it, if there is one."""

    name: str
    calls: int
    modes: tuple[str, ...]
    backward: bool
    start: CallStart = field(default_factory=dict)
    place: tuple[str, str] | None = None


@dataclass(frozen=True)
class Description:
    """The captured calls, and the way in which the program reached the point at which it serves.

    ``complete`` is False where the calls reach more objects than were looked at; ``iterators`` are the paths of what
    has a position that cannot be put back; ``devices`` are types.  ``ran`` holds the executed code of new texts by
    path.  ``lost_settings`` are settings that the program has set to another value since, ``unknown_settings`` those
    that this torch does not have."""

    error: str | None
    failed_in: str | None
    loaded: frozenset[str]
    ran: "dict[str, RanCode]"
    unknown_settings: tuple[str, ...]
    lost_settings: tuple[str, ...]
    torch: str | None
    callables: tuple[CapturedCalls, ...]
    left_out: tuple[str, ...]
    not_called: tuple[str, ...]
    devices: tuple[str, ...]
    complete: bool
    iterators: tuple[str, ...]

    @property
    def with_backward(self) -> frozenset[str]:
        """The names of the callables of which the program runs the backward pass."""
        return frozenset(one.name for one in self.callables if one.backward)


@dataclass(frozen=True)
class ModulePart:
    """A part of a module, or ``repeated`` siblings of one class in it, that can be compiled by itself: ``codes`` follow
    the code of the module (``.layers[0]``), one for each sibling, or for their list if that holds nothing else.
    ``of_torch`` says that its ``forward`` is torch's."""

    codes: tuple[str, ...]
    of_torch: bool
    repeated: bool = False


@dataclass(frozen=True)
class Choices:
    """Backends for use, all backends that can be named, the modes of Inductor, and the arguments that all calls of
    ``torch.compile`` pass besides a backend and its options.  ``cuda`` says that the calls use a GPU."""

    backends: tuple[str, ...]
    all_backends: tuple[str, ...]
    modes: tuple[str, ...]
    kept: dict[str, CompileOption]
    cuda: bool


ExpressionSpan = tuple[int, int, int, int]
"""Line and column of an expression, and of its end, as in ``ast``: columns in bytes of UTF-8, from 0."""


def span_of(node: ast.expr) -> ExpressionSpan:
    """Where an expression is."""
    return node.lineno, node.col_offset, node.end_lineno or node.lineno, node.end_col_offset or 0


class Variation(str, Enum):
    """In which way a call is varied.  The last ones are the most likely to make a device fail."""

    LATER = "later"
    """The values of a later call of the program."""
    ARGUMENT = "argument"
    """Another number or flag."""
    DEFAULT = "default"
    """An argument that has a default is left out."""
    ATTRIBUTE = "attribute"
    """Another number or flag in an attribute or a global that the program sets."""
    HOOK = "hook"
    """A module returns something else, as the program later gives it a forward hook or puts another one there."""
    MODE = "mode"
    """``eval()`` in place of ``train()``, or the other way round."""
    MORE = "more"
    """One more along a dimension."""
    LESS = "less"
    ONE = "one"
    EMPTY = "empty"
    PERMUTED = "permuted"
    """The same values, in another order."""
    NEGATED = "negated"
    ZERO = "zero"
    EXTREME = "extreme"
    """The largest and the smallest values of the dtype."""
    INFINITE = "infinite"
    """Infinity and minus infinity, each in one element."""
    NAN = "nan"
    """NaN in one element: the others show what becomes of their values."""
    COARSE = "coarse"
    """Multiples of 1/8: some are equal, zero, or halfway between two integers."""
    SMALL = "small"
    """A 64th."""
    LARGE = "large"
    """16 times as large."""
    SHIFTED = "shifted"
    """Of one sign if they have both, else of both."""
    MIXED = "mixed"
    """The same values in further orders."""
    BELOW = "below"
    """Integers one below their range, or a mask with no flag set."""
    ABOVE = "above"


@dataclass(frozen=True)
class VariedCall:
    """The last captured call, or the ``first``, of a callable, which has this number, varied ``at`` a path, a parameter
    or a dimension, or as this later call; ``value`` is the number that it has there."""

    callable: int
    kind: Variation
    at: str = ""
    value: str = ""
    first: bool = False


@dataclass(frozen=True)
class RanCode:
    """The code of a file that ran: lines, expressions, the plain arguments of functions (``12 k 3.0``: the line of the
    function, the parameter, and the value), and tested expressions with their outcomes, where these are recorded."""

    lines: frozenset[int] = frozenset()
    expressions: frozenset[ExpressionSpan] = frozenset()
    arguments: frozenset[str] = frozenset()
    outcomes: frozenset[tuple[ExpressionSpan, bool]] = frozenset()

    def __add__(self, other: "RanCode") -> "RanCode":
        return RanCode(*(getattr(self, one.name) | getattr(other, one.name) for one in fields(self)))


@dataclass(frozen=True)
class CompiledPart:
    """The operations of all graphs that ``backend`` compiles: from number ``first``, which counts from 0, to the one
    before ``last``. All others run eager. If ``keep``, the part is kept with its inputs, for a program of its own."""

    backend: str
    first: int
    last: int
    keep: bool = False


@dataclass(frozen=True)
class GraphOperation:
    """An operation of a graph of Dynamo, and the line of the program that it comes from. ``ends_part`` says that a
    compiled part may end after it: no value that crosses is anything but a tensor or a number, and no mode is left."""

    name: str
    path: str
    line: int
    ends_part: bool


@dataclass(frozen=True)
class TimedStep:
    """The step that is timed: an iteration of the loop at ``loop``, the ``number``-th around the calls, or one call of
    each callable.  ``calls``, ``backward`` and ``optimizer`` are in it."""

    loop: str | None
    number: int
    calls: int
    backward: bool
    optimizer: bool
