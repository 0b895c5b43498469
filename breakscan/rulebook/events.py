"""Events: what the static analysis sees a program do, in the terms that rules match."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from breakscan.model.findings import Condition, Confidence, Place


class EventKind(str, Enum):
    """A kind of event.  ``docs/rules.md`` lists the forms of each kind."""

    BRANCH = "branch"
    """Control flow on a value.  Forms: if, guard (an ``if`` that only raises), while, ternary, filter, and, or,
    not, assert (with ``not``, or a tensor before the last ``and``), assert-plain (any other), assert-message, in."""
    CONVERT = "convert"
    """A value becomes a Python number or list.  Forms: item, tolist, float, int, bool, complex."""
    CALL = "call"
    """A call to ``callee``; a method's receiver is argument 0.  Forms: skipped, no-counterpart (not
    traced, as measured, and no rule names the callee), iterator (argument 0 is one, by its syntax),
    optional-keys (of a ``TypedDict``), autograd-function (in a method of one), plain (any other)."""
    INDEX = "index"
    """A subscript.  Forms: load, store, augment, slice.  The operand is the index."""
    ITERATE = "iterate"
    """``for`` over the operand."""
    ENTER = "enter"
    """``with`` on an object of ``callee``.  Forms: made (in the ``with`` line), held (created before), stack (by an
    ``ExitStack``, the callee)."""
    STORE = "store"
    """An attribute is set.  Forms: assign, augment.  The operand is the object that has the attribute.

    Python state that outlives a call of compiled code changes.  Forms: changing-attribute (between two calls, of a
    compiled module that reads it), changing-keys (of a dict that it reads), counted-entry (of a dict that is given),
    growing-attribute (a list of the module, which nothing empties), differs-by-instance (an attribute of objects that
    are compiled one by one), size-branch (of what is compiled for any size), float-update (an attribute or a global
    becomes a float that is computed from it, and other arithmetic reads it)."""
    READ = "read"
    """An attribute is read.  The operand is the object that has the attribute."""
    DEFINE = "define"
    """A definition inside a function.  Forms: class."""
    CONSTRUCT = "construct"
    """An object is created.  Forms: module (an ``nn.Module`` with parameters), parameter."""
    COMPILE = "compile"
    """``torch.compile`` or ``Module.compile`` is called.  Forms: used, discarded, rebound-self, repeated (in a
    loop that does not change what is compiled), generator (of what is compiled)."""
    PASS = "pass"
    """An argument that changes from round to round is passed to something compiled in a loop.  The form says how it
    changes, the operand what the compiled function does with the parameter; the arguments are the options of
    ``torch.compile``.  ``attribute`` is the parameter."""
    SWITCH = "switch"
    """The grad mode or autocast differs between two calls of something compiled.  ``attribute`` is the state."""
    WRAPPER = "wrapper"
    """The wrapper that ``torch.compile`` returns is used other than by calling it.  ``callee`` is what is called."""


FORMS: dict[EventKind, frozenset[str]] = {
    EventKind.BRANCH: frozenset(
        "if guard while ternary filter and or not assert assert-plain assert-message in".split()
    ),
    EventKind.CONVERT: frozenset({"item", "tolist", "float", "int", "bool", "complex"}),
    EventKind.CALL: frozenset({"skipped", "no-counterpart", "iterator", "optional-keys", "autograd-function", "plain"}),
    EventKind.INDEX: frozenset({"load", "store", "augment", "slice"}),
    EventKind.ITERATE: frozenset(),
    EventKind.ENTER: frozenset({"made", "held", "stack"}),
    EventKind.STORE: frozenset(
        "assign augment changing-attribute changing-keys counted-entry differs-by-instance size-branch "
        "growing-attribute float-update".split()
    ),
    EventKind.READ: frozenset(),
    EventKind.DEFINE: frozenset({"class"}),
    EventKind.CONSTRUCT: frozenset({"module", "parameter"}),
    EventKind.COMPILE: frozenset({"used", "discarded", "rebound-self", "repeated", "generator"}),
    EventKind.PASS: frozenset({"changing-number", "changing-text", "changing-size", "growing-container"}),
    EventKind.SWITCH: frozenset({"mixed-grad", "mixed-autocast"}),
    EventKind.WRAPPER: frozenset(),
}

OPERANDS = frozenset(
    "tensor tensor:float tensor:int tensor:bool tensor:0d tensor:parameter tensor:intermediate tensor:given "
    "tensor:by-data number number:drawn number:pointer constant true false none shape shape:by-data module container "
    "container:tensor instance class function:captures parameter:unused parameter:computed "
    "parameter:unrolled parameter:keys size:marked size:unmarked wrapper wrapper:saved wrapper:bypassed unknown".split()
)
"""A kind of operand.  ``number`` is a Python number read from a tensor.  A tensor with a suffix is one of which
more is known, and also counts as ``tensor``; ``container:tensor`` also counts as ``container``.  ``true`` is the
constant ``True``, ``false`` is ``False``, ``number:drawn`` a number that Python's ``random`` drew,
``number:pointer`` what ``data_ptr()`` gives: all are also a ``constant``.  ``function:captures`` is a function that
uses non-constant values of the code around it.
The words from ``parameter:unused`` on say what happens to what is compiled; ``docs/rules.md`` explains them."""


@dataclass(frozen=True, slots=True)
class Argument:
    """An argument of a call: its position, its name, and its possible operands.

    ``true_if`` is the condition under which it is True, where that is not known, ``tensor_if`` that under which it is
    a tensor or an object, or holds a tensor.
    """

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
    ``operand_confidence`` that of its operand and arguments.  ``test`` is the innermost test that encloses it.
    ``via`` is the caller that is in ``place``, if the function itself is not.
    """

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
    text: str = ""
