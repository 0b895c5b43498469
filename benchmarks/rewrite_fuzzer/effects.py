"""Which differences between two outcomes an edit has stated: by the kind of what differs, not by its words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from breakscan.fix.support.difference import EXCEPTIONS, Effect

SHOWN_BY: Mapping[str, Effect] = {
    "warnings": Effect.OUTPUT,
    "output": Effect.OUTPUT,
    "type": Effect.TYPES,
    "value": Effect.VALUES,
    "dtype": Effect.DTYPES,
    "shape": Effect.SHAPES,
    "strides": Effect.STRIDES,
    "aliasing": Effect.STORAGE,
    "requires_grad": Effect.GRADIENTS,
    "gradient": Effect.GRADIENTS,
    "backward": Effect.GRADIENTS,
    "generator": Effect.RANDOM,
    "input": Effect.STATE,
    "state": Effect.STATE,
}
"""The effect that the first word of a kind of outcome shows, if it is no exception."""


CALLS = ("first", "second")
Raised = tuple[tuple[str, str], ...]
"""The types and texts of the exceptions in one call, also of those that the program catches."""


def unstated(
    kinds: Mapping[str, tuple[Any, Any]],
    effects: frozenset[Effect],
    raised: Mapping[str, tuple[Raised, Raised]],
    *,
    reads_output: bool = False,
) -> dict[str, tuple[Any, Any]]:
    """The kinds of outcome that differ although no effect says so.

    ``raised`` has the exceptions of each call, on both sides. If those of a call differ as the effects say, what this
    call and later ones do otherwise follows, but a side that ends earlier prints nothing that the other one does not.
    Of a program that reads what it prints, texts follow from other output.
    """
    start = _first_stated(effects, raised)
    follows = CALLS[CALLS.index(start) :] if start else ()
    found = {}
    for kind, both in kinds.items():
        call = next((one for one in CALLS if f"{one} " in kind), CALLS[-1])
        has_effect = SHOWN_BY.get(kind.split()[0]) in effects
        if reads_output and Effect.OUTPUT in effects and kind.startswith("value"):
            has_effect = has_effect or _only_texts_differ(*both)
        is_cut = call == start and kind.startswith("output") and f"exception of the {call} call" in kinds
        if not has_effect and (call not in follows or (is_cut and not _is_cut(*both))):
            found[kind] = both
    return found


def _first_stated(effects: frozenset[Effect], raised: Mapping[str, tuple[Raised, Raised]]) -> str | None:
    """The first call in which both sides raise otherwise, if an effect says so."""
    for call, (old, new) in raised.items():
        if old != new:
            same = next((place for place, (one, other) in enumerate(zip(old, new, strict=False)) if one != other), None)
            needed = EXCEPTIONS
            if same is None:
                needed = frozenset({Effect.RAISES if len(new) > len(old) else Effect.NO_LONGER_RAISES})
            return call if needed & effects else None
    return None


def _only_texts_differ(old: Any, new: Any) -> bool:
    """Whether the values of a result that differ are texts, as they are described."""
    pairs = zip(old, new, strict=False)
    return len(old) == len(new) and all(str(one).startswith(("'", '"')) for one, other in pairs if one != other)


def _is_cut(old: str, new: str) -> bool:
    return old.startswith(new) or new.startswith(old)
