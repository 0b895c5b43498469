"""Events: what the static analysis sees a program do, in the terms that rules match."""

from dataclasses import dataclass
from enum import Enum

from breakscan.model.findings import Condition, Confidence, Place


class EventKind(str, Enum):
    """A kind of event.  ``docs/rules.md`` describes the kinds and their forms."""

    BRANCH = "branch"
    """Control flow on a value."""
    CONVERT = "convert"
    """A value becomes a Python number or list."""
    CALL = "call"
    """A call to ``callee``; a method's receiver is argument 0."""
    INDEX = "index"
    """A subscript.  The operand is the index."""
    ITERATE = "iterate"
    """``for`` over the operand."""
    ENTER = "enter"
    """``with`` on an object of ``callee``."""
    STORE = "store"
    """An attribute is set, or Python state changes that outlives a call of compiled code."""
    READ = "read"
    """An attribute is read.  The operand is the object that has it, as for a store."""
    DEFINE = "define"
    """A definition inside a function."""
    CONSTRUCT = "construct"
    """An object is created."""
    COMPILE = "compile"
    """``torch.compile`` or ``Module.compile`` is called."""
    PASS = "pass"
    """An argument that changes from round to round is passed to something compiled in a loop.  The operand is what the
    compiled function does with the parameter, ``attribute``; the arguments are the options of ``torch.compile``."""
    SWITCH = "switch"
    """The grad mode or autocast differs between two calls of something compiled.  ``attribute`` is the state."""
    WRAPPER = "wrapper"
    """The wrapper that ``torch.compile`` returns is used other than by calling it.  ``callee`` is what is called."""


_FORMS = {
    EventKind.BRANCH: "if guard while ternary filter and or not assert assert-plain assert-message in",
    EventKind.CONVERT: "item tolist float int bool complex",
    EventKind.CALL: "skipped no-counterpart iterator optional-keys side-effect autograd-function plain",
    EventKind.INDEX: "load store augment slice",
    EventKind.ENTER: "made held stack",
    EventKind.STORE: "assign augment changing-attribute changing-keys counted-entry differs-by-instance size-branch "
    "growing-attribute float-update",
    EventKind.DEFINE: "class",
    EventKind.CONSTRUCT: "module parameter",
    EventKind.COMPILE: "used once discarded rebound-self repeated generator autograd-function",
    EventKind.PASS: "changing-number changing-text changing-size growing-container",
    EventKind.SWITCH: "mixed-grad mixed-autocast",
}
FORMS = {kind: frozenset(_FORMS.get(kind, "").split()) for kind in EventKind}

OPERANDS = frozenset(
    "tensor tensor:float tensor:int tensor:bool tensor:0d tensor:parameter tensor:intermediate tensor:given "
    "tensor:by-data number number:drawn number:pointer constant true false none shape shape:by-data module container "
    "container:tensor instance class function:captures parameter:unused parameter:computed "
    "parameter:unrolled parameter:keys size:marked size:unmarked wrapper wrapper:saved wrapper:bypassed unknown".split()
)
"""The kinds of operands, which ``docs/rules.md`` describes.  One with a suffix, of which more is known, also counts as
the kind without it, and all values of Python that are known count as a ``constant``."""


@dataclass(frozen=True, slots=True)
class Argument:
    """An argument of a call: its position, its name, and its possible operands.

    ``true_if`` is the condition under which it is True, where that is not known, ``tensor_if`` that under which it is
    a tensor or an object, or holds a tensor."""

    index: int | None
    name: str | None
    operands: frozenset[str]
    true_if: Condition | None = None
    tensor_if: Condition | None = None


@dataclass(frozen=True, slots=True)
class Event:
    """One thing that a program does that the compiler cares about.

    Lines and columns count from 1, ``end_column`` is the first column after the span.  ``operands`` are
    all those of :data:`OPERANDS` that match the operand.  ``confidence`` is that of the event itself,
    ``operand_confidence`` that of its operand and arguments.  ``test`` is the innermost test that encloses it, ``rare``
    that it hardly ever holds.
    ``via`` is the caller that is in ``place``, if the function itself is not."""

    kind: EventKind
    line: int
    column: int
    end_line: int
    end_column: int
    form: str = ""
    callee: str | None = None
    attribute: str | None = None
    operands: frozenset[str] = frozenset()
    arguments: tuple[Argument, ...] = ()
    place: Place = Place.PLAIN
    via: str | None = None
    in_region: bool = True
    confidence: Confidence = Confidence.CERTAIN
    operand_confidence: Confidence = Confidence.CERTAIN
    conditions: tuple[Condition, ...] = ()
    test: Condition | None = None
    rare: bool = False
    text: str = ""
