"""The conditions that a finding holds under, in words."""

from __future__ import annotations

from collections.abc import Iterable

from breakscan.model.findings import Condition, ConditionKind

_LONGEST = 100


def conditions_in_words(conditions: Iterable[Condition]) -> str | None:
    """``"`x` is a tensor and `verbose` is on"``; None for no condition."""
    return " and ".join(dict.fromkeys(map(_shortened, conditions))) or None


def _shortened(condition: Condition) -> str:
    words = _in_words(condition)
    return words if len(words) <= _LONGEST else f"{words[: _LONGEST - 2]}…`"


def _in_words(condition: Condition) -> str:
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
        case ConditionKind.UNSEEN:
            return "the values are not those of the recorded run"
