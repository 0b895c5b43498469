"""A problem of a run, what it costs, and the lines that lead to it."""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

from breakscan.model.findings import ChangeKind, Holder, Origin, Severity, Site, Verdict
from breakscan.model.remedy import Remedy, remedies_in_words
from breakscan.model.words import Worded, duration, listed

_ENOUGH = 8  # passes from which on it is worth a word how much they vary
_WIDE = 1.5
_NOTABLY = 1.05  # the ratio of host time to device time from which on it is mentioned


@dataclass(frozen=True, slots=True)
class Caller:
    """A line that the program went through, in the paths and names that reports show."""

    path: str
    line: int
    function: str | None
    origin: Origin


def users_line(stack: Sequence[Caller]) -> Caller | None:
    """The innermost line of the user's code in a stack whose outermost line comes first."""
    return next((caller for caller in reversed(stack) if caller.origin is Origin.USER), None)


@dataclass(frozen=True, slots=True)
class Price:
    """The part of what a break costs that was seen, each time that the program runs through it: the time between the
    graph before it and the next one, on the host and, where timed, on the device, and whether the host waits for the
    device there; and what it took once, to compile the code after it.  It is no bound of what a repair saves: fusion
    and the backward are not in it, and work that has to be done anyhow is.  If ``eager``, the passes are calls of a
    function that runs eager.

    ``host_seconds`` and ``device_seconds`` are medians; half of the passes took between ``low_seconds`` and
    ``high_seconds`` on the host.

    Where the host waits for the device, it waits for work that has to be done anyhow: then what counts is the time
    that the device does not spend on graphs there."""

    passes: int
    host_seconds: float
    device_seconds: float | None
    waits: bool
    compile_seconds: float
    low_seconds: float = 0.0
    high_seconds: float = 0.0
    eager: bool = False

    @property
    def is_on_device(self) -> bool:
        """True if the device's time is what counts."""
        return self.waits and self.device_seconds is not None

    @property
    def seconds(self) -> float:
        """The time of one pass."""
        if self.waits and self.device_seconds is not None:
            return min(self.device_seconds, self.host_seconds)
        return self.host_seconds

    @property
    def cost(self) -> float | None:
        """Seconds over all passes; None for a single one, which may have been disturbed."""
        return self.passes * self.seconds if self.passes > 1 else None

    @property
    def words(self) -> str:
        """``1.2 ms a pass between graphs, 340 passes; 0.9 s to compile what follows it``."""
        said = [self._each_pass] if self.passes else []
        if self.is_on_device and self.host_seconds > _NOTABLY * self.seconds:
            said.append(f"the host spends {duration(self.host_seconds)} there and waits for the device")
        elif self.waits:
            said.append("the host waits for the device there")
        if self.compile_seconds:
            said.append(f"{duration(self.compile_seconds)} to compile what follows it")
        return "; ".join(said)

    @property
    def _each_pass(self) -> str:
        one, many, where = ("call", "calls", "eager") if self.eager else ("pass", "passes", "between graphs")
        device = " on the device" if self.is_on_device else ""
        if self.passes == 1:
            return f"{duration(self.seconds)} {where}{device} in the only {one} that was timed"
        if not self.is_on_device and self.device_seconds is not None:
            device = f" ({duration(self.device_seconds)} on the device)"
        said = f"{duration(self.seconds)} a {one} {where}{device}, {self.passes} {many}"
        varies = self.passes >= _ENOUGH and self.high_seconds > _WIDE * self.low_seconds > 0 and not self.is_on_device
        spread = f", half of them {duration(self.low_seconds)} to {duration(self.high_seconds)}" if varies else ""
        return said + spread


@dataclass(frozen=True, slots=True)
class FunctionHead:
    """A function and its first line."""

    site: Site
    function: str


@dataclass(frozen=True, slots=True)
class ValueChange:
    """A change that recompiled a function: ``subject`` is the expression that changed, ``values`` what it was compiled
    for and what came later, as far as known, each once, and ``demand`` what has to hold; ``is_bound`` says that the
    first value is only known to meet the demand.

    Of a variable that a function closes over or has a default for, ``owner`` is that function.  Of an attribute, it is
    the expression of its object, as ``self.norm`` of ``self.norm.eps``, and ``objects``
    is the number of objects that were met, if each keeps its own value: 0 where one object changes it.  Of a tensor,
    ``owner`` is the tensor, ``dimension`` that of a size or stride, and ``is_parameter`` is true if torch keeps its
    sizes fixed, as it does for those of a ``Parameter``.

    ``asked_at`` is the line that needs it to be so, as an ``if``, and ``switched_at`` the line that changed it: of a
    value that crosses a break, that of the break."""

    kind: ChangeKind
    holder: Holder
    subject: str
    demand: str
    values: tuple[str, ...]
    owner: str = ""
    dimension: int | None = None
    is_parameter: bool = False
    is_bound: bool = False
    objects: int = 0
    asked_at: Caller | None = None
    switched_at: Caller | None = None


@dataclass(frozen=True, slots=True)
class SharedCode:
    """A function of which there are several versions, for whatever reasons: what changed, their number, their limit if
    it was met, the objects that it belongs to (layers, parameters; 0 or 1 where it is not about objects), the lines
    that call it, and the calls that ran eager past the limit, with the values for which there is no version, and the
    line that met the limit, if it had compiled nothing before."""

    function: str
    subjects: tuple[str, ...]
    versions: int
    limit: int | None
    objects: int
    callers: tuple[Caller, ...]
    eager_calls: int
    eager_values: tuple[str, ...]
    eager_from: Caller | None = None


class ProblemKind(Worded):
    """A kind of problem of a run, with ``words`` for it and a ``summary``."""

    BREAK = "break", "graph break"
    FAILURE = "failure", "not compiled"  # torch.compile raised on a function: at the line that it could not compile
    FUNCTION = "function", "not compiled"  # a function that is not compiled
    RECOMPILES = "recompiles", "recompiled"  # the recompiles that one change caused
    EAGER_CALLS = "eager-calls", "calls that ran eager"  # calls of something compiled that used no compiled code
    PLAIN_CALLS = "plain-calls", "calls around the compiled model"
    """Calls of a module that is also compiled, or of a method of a compiled module, that do not go through it."""
    LATE_HOOKS = "late-hooks", "hooks that compiled code ignores"
    STATE_KEYS = "state-keys", "names of a compiled model"
    """Keys of a state dict with the name by which a compiled module holds the original."""
    COMPILED_ANEW = "compiled-anew", "compiled anew"
    """A function that several processes compile, or one again after a reset."""
    CACHE_BYPASS = "cache-bypass", "cache that is bypassed"
    UNROLLED_LOOP = "unrolled-loop", "unrolled loop"  # a loop of which each round is in the graph
    FAILED_RUN = "failed-run", "compiled code that raises"  # compiled code that raised when it ran
    EXPORT = "export", "export problem"


AROUND_COMPILER = (
    ProblemKind.EAGER_CALLS, ProblemKind.PLAIN_CALLS, ProblemKind.STATE_KEYS, ProblemKind.COMPILED_ANEW,
    ProblemKind.CACHE_BYPASS, ProblemKind.UNROLLED_LOOP, ProblemKind.FAILED_RUN, ProblemKind.LATE_HOOKS,
)  # fmt: skip
"""The kinds of problems that the compiler does not report."""


@dataclass(frozen=True, slots=True)
class Problem:
    """A problem of a run, once.

    ``id`` and ``name`` are those of ``rule``, else PyTorch's, else those of the kind.  ``what`` is what happened, in
    few words; ``why`` a sentence without its full stop: of recompiles, what changed; ``reason`` is torch's own.
    ``consequences`` are whole sentences; ``hints`` are Dynamo's, where there is no remedy.

    Of recompiles, ``changes`` are those that came at once, that by which torch noticed first; ``shared`` is the
    function with all its versions, also those of other causes.

    ``verdict`` is None where nothing is lost.  ``cause`` is the kind of problem that explains this one: a break that
    makes a function run eager, or recompiles past the limit.  ``rest_only`` says that it is the part of a function that
    follows a break; ``head`` is the function that was to be compiled, where the site is another.

    Of code that is not the user's, ``users_line`` is the user's line that leads there.  ``called_from`` are the lines
    that explain how the program got to the site, ``stack`` all of them, outermost first.  ``page`` is PyTorch's about
    the break.  ``cost`` is what was seen of its cost, in seconds of calls or of compiling, None where it is not known.
    """

    kind: ProblemKind
    id: str
    name: str
    rule: str | None
    verdict: Verdict | None
    severity: Severity
    site: Site
    origin: Origin
    functions: tuple[str, ...]
    what: str
    why: str
    remedies: tuple[Remedy, ...]
    count: int
    reason: str = ""
    consequences: tuple[str, ...] = ()
    hints: tuple[str, ...] = ()
    called_from: tuple[Caller, ...] = ()
    users_line: Caller | None = None
    stack: tuple[Caller, ...] = ()
    gb_type: str | None = None
    gb_id: str | None = None
    page: str | None = None
    price: Price | None = None
    cost: float | None = None
    code: str | None = None
    cause: ProblemKind | None = None
    rest_only: bool = False
    head: FunctionHead | None = None
    changes: tuple[ValueChange, ...] = ()
    shared: SharedCode | None = None

    @property
    def is_lost(self) -> bool:
        """True if a function is not compiled, and no break is to blame."""
        is_function = self.kind in (ProblemKind.FUNCTION, ProblemKind.FAILURE)
        return is_function and self.verdict is not None and self.cause is not ProblemKind.BREAK

    @property
    def counts_as_break(self) -> bool:
        """True if gates and locks count it: breaks and lost functions outside torch, and what stood against exports."""
        if self.kind is ProblemKind.EXPORT:
            return True
        return (self.kind is ProblemKind.BREAK or self.is_lost) and self.origin is not Origin.FRAMEWORK

    @property
    def is_failure(self) -> bool:
        """True if torch.compile raises there."""
        return self.verdict is Verdict.RAISES and self.kind not in (ProblemKind.EXPORT, ProblemKind.FAILED_RUN)

    @property
    def function(self) -> str | None:
        """The functions in words, if any is known."""
        return listed(self.functions, "function") or None

    @property
    def rule_words(self) -> str:
        """``BRK101 branch-on-tensor``; nothing without a rule."""
        return f"{self.id} {self.name}" if self.rule else ""

    @property
    def advice(self) -> str | None:
        """The remedies in one text."""
        return remedies_in_words(self.remedies)

    @property
    def takes(self) -> str:
        """The part of its cost that was seen, in words; empty where there is none."""
        if self.price:
            return self.price.words
        return f"{duration(self.cost)} to compile again" if self.kind is ProblemKind.RECOMPILES and self.cost else ""

    @property
    def times(self) -> str:
        """``3×``; empty for what happened once."""
        return f"{self.count}×" if self.count > 1 or self.kind is ProblemKind.RECOMPILES else ""

    def identity(self) -> Hashable:
        """Equal for what cannot be distinguished in two runs of a program."""
        return self.site.path, self.functions[:1], self.rule or self.gb_type or self.name, self.code or ""
