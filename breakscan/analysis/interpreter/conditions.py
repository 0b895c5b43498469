"""Conditions that an event or a value holds under, and the words for them."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from enum import Enum


class ConditionKind(Enum):
    """The kind of question that a condition asks about its subject."""

    TEST = "test"
    """The subject is a test of the program."""
    GIVEN = "given"
    """The subject is a parameter with the default None."""
    FLAG = "flag"
    """The subject is a parameter with a default of True or False; the outcome is that it is on."""
    TENSOR = "tensor"
    MASK = "mask"
    """The subject is a tensor of booleans."""
    RETURNS_TENSOR = "returns-tensor"
    """The subject is what is called."""
    INSTANCE = "instance"
    """The subject is an instance of one of ``classes``."""
    RAISED = "raised"
    """The subject is a class of exceptions, or the empty text for any."""
    CHOSEN = "chosen"
    """The subject is what is called, one of several functions."""
    PASSED_ON = "passed-on"
    """The subject is a method that a decorator of its class replaces: the replacement calls it."""


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition.

    ``subject`` is source text, empty if the value has no name. ``classes`` holds the names for ``INSTANCE``, and the
    decorator for ``PASSED_ON``.
    """

    kind: ConditionKind
    subject: str
    outcome: bool = True
    classes: tuple[str, ...] = ()

    @property
    def asks_for_tensor(self) -> bool:
        """Whether a value that it belongs to may be something other than a tensor."""
        return self.kind in (ConditionKind.TENSOR, ConditionKind.RETURNS_TENSOR)


def has_outcome(test: ast.expr, outcome: bool) -> Condition:
    """The condition that a test has an outcome; one comparison is turned round rather than negated."""
    if not outcome and isinstance(test, ast.Compare) and len(test.ops) == 1 and type(test.ops[0]) in _OPPOSITE:
        test, outcome = ast.Compare(test.left, [_OPPOSITE[type(test.ops[0])]()], test.comparators), True
    return Condition(ConditionKind.TEST, ast.unparse(test), outcome)


_OPPOSITE: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
}


def in_words(condition: Condition) -> str:
    """The condition as findings show it."""
    subject = f"`{condition.subject}`" if condition.subject else "it"
    match condition.kind:
        case ConditionKind.TEST:
            return subject if condition.outcome else f"not {subject}"
        case ConditionKind.GIVEN:
            return f"{subject} is given"
        case ConditionKind.FLAG:
            return f"{subject} is {'on' if condition.outcome else 'off'}"
        case ConditionKind.TENSOR:
            return f"{subject} is a tensor"
        case ConditionKind.MASK:
            return f"{subject} is a tensor of booleans"
        case ConditionKind.RETURNS_TENSOR:
            return f"{subject} returns a tensor"
        case ConditionKind.INSTANCE:
            names = (f"{'an' if name == 'int' else 'a'} {name}" for name in condition.classes)
            return f"{subject} is {' or '.join(names)}"
        case ConditionKind.RAISED:
            return f"{subject if condition.subject else 'something'} is raised"
        case ConditionKind.CHOSEN:
            return f"{subject} is this function"
        case ConditionKind.PASSED_ON:
            return f"`@{condition.classes[0]}` lets it through to this {subject}"
