"""Why compiled autograd captured a backward pass again."""

from __future__ import annotations

from breakscan.model.words import counted
from breakscan.record.parsers.graphs import AutogradChange, AutogradChangeKind

_STATES = {
    "AccumulateGrad": "a parameter has a gradient or a hook that it had not before, or the reverse (zero_grad() leaves "
    "no gradient)",
    "CompiledFunctionBackward": "it goes through another compiled graph, as after a recompile",
}


def change_words(change: AutogradChange) -> str:
    """``there is another operation in it, MulBackward0``."""
    match change.kind:
        case AutogradChangeKind.NODE:
            return f"there is another operation in it, {change.name}"
        case AutogradChangeKind.STATE:
            return _STATES.get(change.name, f"{change.name} has other inputs or hooks")
        case AutogradChangeKind.SIZES:
            return f"{counted(change.count, 'size')} changed"
        case AutogradChangeKind.OTHER:
            return change.name
