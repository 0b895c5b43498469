"""Events: what the static half sees a program do, in the words that rules match on."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from breakscan.findings import Confidence, Place


class EventKind(str, Enum):
    """What happens.  ``docs/rules.md`` lists the forms of each kind."""

    BRANCH = "branch"
    """Control flow on a value.  Forms: if, guard (an ``if`` that only raises), while, ternary, filter, and, or,
    not, assert (with ``not``, or a tensor before the last ``and``: a plain one compiles), assert-message, in."""
    CONVERT = "convert"
    """A value becomes a Python number or list.  Forms: item, tolist, float, int, bool, complex."""
    CALL = "call"
    """A call to ``callee``; a method's receiver is argument 0."""
    INDEX = "index"
    """A subscript.  Forms: load, store, augment, slice.  The operand is the index."""
    ITERATE = "iterate"
    """``for`` over the operand."""
    ENTER = "enter"
    """``with`` on an object of ``callee``.  Forms: made (in the ``with`` line), held (made before)."""
    STORE = "store"
    """An attribute is set.  Forms: assign, augment.  The operand is the object that has the attribute."""
    READ = "read"
    """An attribute is read.  The operand is the object that has the attribute."""
    DEFINE = "define"
    """A definition inside a function.  Forms: class."""
    CONSTRUCT = "construct"
    """An object is made.  Forms: module (an ``nn.Module`` with parameters), parameter."""
    COMPILE = "compile"
    """``torch.compile`` or ``Module.compile``.  Forms: used, discarded, rebound-self, repeated (in a
    loop that does not change what is compiled), generator (of what is compiled), unknown-mode."""
    USE = "use"
    """Something compiled is called or otherwise used, or its code changes Python state.  ``docs/rules.md`` has the
    forms; ``attribute`` is the name that it is about."""


FORMS: dict[EventKind, frozenset[str]] = {
    EventKind.BRANCH: frozenset(
        {
            "if",
            "guard",
            "while",
            "ternary",
            "filter",
            "and",
            "or",
            "not",
            "assert",
            "assert-message",
            "in",
        }
    ),
    EventKind.CONVERT: frozenset({"item", "tolist", "float", "int", "bool", "complex"}),
    EventKind.CALL: frozenset(),
    EventKind.INDEX: frozenset({"load", "store", "augment", "slice"}),
    EventKind.ITERATE: frozenset(),
    EventKind.ENTER: frozenset({"made", "held"}),
    EventKind.STORE: frozenset({"assign", "augment"}),
    EventKind.READ: frozenset(),
    EventKind.DEFINE: frozenset({"class"}),
    EventKind.CONSTRUCT: frozenset({"module", "parameter"}),
    EventKind.COMPILE: frozenset({"used", "discarded", "rebound-self", "repeated", "generator", "unknown-mode"}),
    EventKind.USE: frozenset(
        {
            "accumulated-gradients",
            "changing-attribute",
            "changing-default",
            "changing-number",
            "changing-size",
            "changing-text",
            "fsdp",
            "global-counter",
            "growing-attribute",
            "growing-container",
            "isinstance",
            "method",
            "mixed-autocast",
            "mixed-grad",
            "output-fed-back",
            "output-kept",
            "state-dict",
            "state-dict-mismatch",
            "switched",
            "timed-cold",
            "timed-unsynchronised",
            "unrolled-number",
        }
    ),
}

OPERANDS = frozenset(
    {
        "tensor",
        "tensor:float",
        "tensor:int",
        "tensor:bool",
        "tensor:0d",
        "tensor:parameter",
        "tensor:intermediate",
        "number",
        "number:drawn",
        "constant",
        "true",
        "none",
        "shape",
        "module",
        "container",
        "container:tensor",
        "instance",
        "class",
        "function:captures",
        "unknown",
    }
)
"""What an operand can be.  ``number`` is a Python number read out of a tensor; a tensor with a suffix is one of which
more is known, and also counts as ``tensor``; so is ``container:tensor``, which holds one.  ``true`` is the constant
``True``, ``number:drawn`` a number that Python's ``random`` drew: both are also a ``constant``.
``function:captures`` is a function that uses what is no constant of the code around it."""


@dataclass(frozen=True, slots=True)
class Argument:
    """An argument of a call: where it stands, and what it can be."""

    index: int | None
    name: str | None
    operands: frozenset[str]


@dataclass(frozen=True, slots=True)
class Event:
    """One thing that a program does that the compiler cares about.

    Lines and columns count from 1, ``end_column`` is the first column behind the span.  ``operands`` holds
    every word of :data:`OPERANDS` that is true of the operand.  ``confidence`` is that of the event itself,
    ``operand_confidence`` that of what is said of its operand and arguments.  ``test`` is the innermost test that it
    stands under, whatever that asks.  ``via`` is the caller that stands in
    ``place``, where it is not the function itself that does.
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
    condition: str | None = None
    test: str | None = None
    text: str = ""
