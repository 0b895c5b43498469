"""The basic types that every part of breakscan uses.  A *site* is a place in the user's own file, a *finding* is one
rule at one site.  ``check``, ``explain``, ``fix`` and every report exchange only these.  Imports no other module."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum


class Kind(str, Enum):
    """The subject of a finding."""

    GRAPH_BREAK = "graph-break"
    EXPORT = "export"  # code that ``torch.export`` cannot export, though ``torch.compile`` compiles it
    RECOMPILE = "recompile"
    WRONG_RESULT = "wrong-result"
    MISUSE = "misuse"
    PERFORMANCE = "performance"


class Severity(str, Enum):
    """The severity: a frame that runs eager is an error, a clean split is a warning, a hazard is info."""

    ERROR = "error"
    WARNING = "warning"
    INFO = "info"


class Confidence(str, Enum):
    """The certainty of the static analysis, from proved to guessed."""

    CERTAIN = "certain"
    LIKELY = "likely"
    CONDITIONAL = "conditional"
    POSSIBLE = "possible"


class Origin(str, Enum):
    """The owner of the code of a recorded break."""

    USER = "user"
    LIBRARY = "library"
    FRAMEWORK = "framework"


class ChangeKind(str, Enum):
    """The kind of thing that a function was compiled for, and that was another in a later call."""

    SIZE = "size"
    BRANCH_ON_SIZE = "branch-on-size"
    """A condition on a size that was left open: another branch is taken, or it has to divide evenly."""
    EQUAL_SIZES = "equal-sizes"  # two sizes that were equal when a version was compiled, which torch takes for one
    RANK = "rank"
    LAYOUT = "layout"  # strides, or that a tensor is a view of another one
    DTYPE = "dtype"
    DEVICE = "device"
    REQUIRES_GRAD = "requires-grad"
    INFERENCE = "inference"  # the tensor was made under ``torch.inference_mode()``, or not
    TENSOR = "tensor"  # another property of a tensor
    TENSOR_TYPE = "tensor-type"  # a tensor in one call, a parameter or no tensor in another
    TYPE = "type"
    NUMBER = "number"
    FLAG = "flag"  # a bool, a string, None, a dtype, a tuple of such
    SET_LATER = "set-later"  # an attribute that was missing or None when a version was compiled
    LENGTH = "length"
    KEYS = "keys"  # a key is in a dictionary, or not
    FUNCTION = "function"
    OBJECT = "object"  # another object, where the version is for one object
    FREED = "freed"  # an object that a version was compiled for is no longer in memory
    TRAINING = "training"
    GRAD_MODE = "grad-mode"
    GLOBAL_STATE = "global-state"  # autocast, default dtype, deterministic algorithms, threads, torch function modes
    ALIAS = "alias"
    BACKEND = "backend"
    OTHER = "other"


class Holder(str, Enum):
    ARGUMENT = "argument"
    ATTRIBUTE = "attribute"
    MODULE = "module"  # an attribute of a module, of which torch compiles each int in
    GLOBAL = "global"
    CLOSURE = "closure"  # a variable that a function closes over
    DEFAULT = "default"  # a default argument, or what ``functools.partial`` holds
    RESULT = "result"  # a value that crosses a break: computed before it, and used after it
    NONE = "none"  # nothing of the program's: a state of torch, or not known


class Verdict(str, Enum):
    """The treatment of a piece of code by Dynamo on one torch version."""

    COMPILES = "compiles"  # one graph, no break
    SPLITS = "splits"  # a graph break: a graph before it and one after it, if there is anything to compile
    EAGER = "eager"  # the frame runs eager: 0 graphs, or only the code before the last place to resume at
    RECOMPILES = "recompiles"  # compiles, and recompiles on a later call
    RAISES = "raises"  # compiling raises and eager Python does not (always for a break with ``fullgraph=True``)
    WRONG = "wrong"  # compiles, and a later call gives another result than eager Python
    UNUSED = "unused"  # torch.compile was called, and nothing was ever compiled

    @property
    def words(self) -> str:
        """``splits the graph``."""
        return {Verdict.EAGER: "runs eager", Verdict.SPLITS: "splits the graph"}.get(self, self.value)

    @property
    def severity(self) -> Severity:
        """That of a break in a run."""
        return Severity.WARNING if self is Verdict.SPLITS else Severity.ERROR


class Place(str, Enum):
    """The statement that encloses the code in its frame, as far as it affects the verdict."""

    PLAIN = "plain"
    LOOP = "loop"
    TRY = "try"
    WITH = "with"


class Mode(str, Enum):
    """The ways to compile that code is checked for, which have separate verdicts."""

    DEFAULT = "default"  # ``torch.compile``
    FULLGRAPH = "fullgraph"  # ``torch.compile(fullgraph=True)``
    EXPORT = "export"  # ``torch.export.export``, which runs the Python code with fake tensors: Dynamo has no part in it
    EXPORT_STRICT = "export-strict"  # ``torch.export.export(strict=True)``, which traces the code with Dynamo

    @property
    def exports(self) -> bool:
        return self in (Mode.EXPORT, Mode.EXPORT_STRICT)


@dataclass(frozen=True, slots=True)
class Site:
    """A span in a user's file.  Lines and columns count from 1; ``end_column`` is the first column after it."""

    path: str
    line: int
    column: int
    end_line: int
    end_column: int

    def shares_line_with(self, other: "Site") -> bool:
        """True if both are on a common line of one file."""
        return self.path == other.path and self.line <= other.end_line and other.line <= self.end_line


class Assumption(str, Enum):
    """The reason why code counts as compiled, where nothing in the program says so."""

    FORWARD = "forward"  # it is the ``forward`` of a module
    FUNCTION = "function"  # any function could be compiled


@dataclass(frozen=True, slots=True)
class Region:
    """The start of compiled code, for the code of a finding.  ``entry`` is the qualified name of the function that is
    compiled there, ``how`` the code that compiles it, empty where only assumed; ``recorded`` if a run shows it."""

    path: str
    line: int
    how: str
    entry: str | None = None
    assumed: Assumption | None = None
    recorded: bool = False


class ConditionKind(Enum):
    """The kind of question that a condition asks about its subject; those that say more of it come first."""

    TEST = "test"  # the subject is a test of the program
    DEVICE = "device"  # the subject is a test that has this outcome without CUDA: hardly anybody compiles there
    TENSOR = "tensor"
    MASK = "mask"  # the subject is a tensor of booleans
    INSTANCE = "instance"  # the subject is an instance of one of ``classes``
    GIVEN = "given"  # the subject is a parameter with the default None
    FLAG = "flag"  # the subject is a parameter with a default of True or False; the outcome is that it is on
    RETURNS_TENSOR = "returns-tensor"  # the subject is what is called
    RAISED = "raised"  # the subject is a class of exceptions, or the empty text for any
    CHOSEN = "chosen"  # the subject is what is called, one of several functions
    PASSED_ON = "passed-on"  # the subject is a method that a decorator of its class replaces: the replacement calls it
    UNSEEN = "unseen"  # values are not those of a recorded run, which contradict the finding; without a subject


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition under which a value is of its kind, or a finding is one.  ``subject`` is source text, empty if the
    value has no name. ``classes`` holds the names for ``INSTANCE``, and the decorator for ``PASSED_ON``."""

    kind: ConditionKind
    subject: str
    outcome: bool = True
    classes: tuple[str, ...] = ()

    @property
    def asks_for_tensor(self) -> bool:
        """True if a value that it belongs to may be something other than a tensor."""
        return self.kind in (ConditionKind.TENSOR, ConditionKind.RETURNS_TENSOR)


@dataclass(frozen=True, slots=True)
class RewriteOffer:
    """A rewrite at a site; ``safety`` is ``safe`` or ``unsafe``."""

    id: str
    safety: str


@dataclass(frozen=True, slots=True)
class Finding:
    """One rule at one site.  ``function`` is the qualified name of the enclosing function, or ``None``; ``via`` that
    of the caller whose frame runs eager, if the call is in ``place`` and not the site itself.
    All of ``conditions`` must hold.  ``behind`` is the site of the finding that hides this one from the compiler.
    ``observed`` is 0 where the code alone shows it, else the number of calls of a recorded run that show it.
    ``mode`` is how the code is compiled, ``torch`` the version that it is judged for.  ``remedies`` are
    the names of those that only the code there decides on.  ``after_split`` says that a break before it in its function
    splits the graph: the code before that one is compiled."""

    rule: str
    name: str
    kind: Kind
    severity: Severity
    confidence: Confidence
    message: str
    site: Site
    function: str | None
    region: Region | None
    gb: tuple[str, ...]
    torch: str
    verdict: Verdict | None = None
    place: Place = Place.PLAIN
    via: str | None = None
    rewrite: RewriteOffer | None = None
    conditions: tuple[Condition, ...] = ()
    behind: Site | None = None
    observed: int = 0
    mode: Mode = Mode.DEFAULT
    remedies: tuple[str, ...] = ()
    after_split: bool = False


@dataclass(frozen=True, slots=True)
class SourceError:
    """The reason why a file, or a part of it, could not be checked.  ``syntax``: it is not valid for this Python."""

    path: str
    line: int
    column: int
    message: str
    syntax: bool = False


@dataclass(frozen=True, slots=True)
class CheckTarget:
    """The target of a check: a version of torch, the measured one whose verdicts count, and how code is compiled."""

    torch: str
    ledger: str
    mode: Mode


@dataclass(frozen=True, slots=True)
class CheckResult:
    """The result of one ``check``.  Findings are ordered by path, line and column; ``suppressed`` counts those that
    a comment suppressed, ``files`` the files that were read, including errors.  ``targets`` are several where the
    configurations of the files differ.  ``warnings`` are suppressions without effect: they cannot be parsed, or name
    no rule.  ``covered`` are all findings that comments suppress, also those that settings would hide.  ``roots`` has
    for each file with findings the absolute paths of checked files from which all of them are reached.  ``depends`` are
    the files that standard input depends on.  ``elsewhere`` are findings in code that nothing compiles, in a project
    that names what it compiles.  ``compiled`` has regions of functions, ``outside`` those of functions in files that
    were not to be checked, ``unknown`` calls with unknown targets."""

    findings: tuple[Finding, ...]
    errors: tuple[SourceError, ...]
    files: int
    suppressed: int
    targets: tuple[CheckTarget, ...]
    warnings: tuple[SourceError, ...] = ()
    covered: tuple[Finding, ...] = ()
    roots: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    depends: frozenset[str] = frozenset()
    elsewhere: tuple[Finding, ...] = ()
    compiled: Sequence[Region] = ()
    outside: Sequence[Region] = ()
    unknown: Sequence[str] = ()
