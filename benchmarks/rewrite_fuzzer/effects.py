"""Which differences between two outcomes an edit has stated: by the kind of what differs, not by its words."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from breakscan.rewrite_support.difference import Difference, Effect

SHOWN_BY: Mapping[str, Effect] = {
    "exception": Effect.EXCEPTIONS,
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
"""The effect that the first word of a kind of outcome shows."""

_FOLLOWS: Mapping[Effect, frozenset[Effect]] = {
    Effect.VALUES: frozenset({Effect.GRADIENTS, Effect.STATE, Effect.OUTPUT}),
    Effect.RANDOM: frozenset({Effect.VALUES}),
    Effect.STATE: frozenset({Effect.VALUES}),
    Effect.STORAGE: frozenset({Effect.VALUES, Effect.STATE}),
    Effect.DTYPES: frozenset({Effect.VALUES, Effect.EXCEPTIONS}),
    Effect.SHAPES: frozenset({Effect.VALUES, Effect.STRIDES, Effect.STORAGE, Effect.EXCEPTIONS}),
    Effect.TYPES: frozenset({Effect.DTYPES, Effect.SHAPES, Effect.STORAGE}),
}
"""What the rest of a program may make of an effect: it computes with the values, and stops at an exception."""


def allowed(differences: Iterable[Difference], *, reads_gradients: bool = False) -> frozenset[Effect]:
    """The effects of differences, and what follows from them; exceptions let nothing follow: see :func:`unstated`.

    ``reads_gradients``: whether the program computes with gradients.
    """
    found = {effect for one in differences for effect in one.effects}
    queue = [one for one in found if one is not Effect.EXCEPTIONS]
    for one in queue:
        follows = _FOLLOWS.get(one, frozenset())
        if one is Effect.GRADIENTS and reads_gradients:
            follows = frozenset({Effect.VALUES, Effect.STRIDES, Effect.EXCEPTIONS})
        more = follows - found
        found |= more
        queue += [effect for effect in more if effect is not Effect.EXCEPTIONS]
    return frozenset(found)


def unstated(
    kinds: Mapping[str, tuple[Any, Any]], effects: frozenset[Effect], *, raises: bool
) -> dict[str, tuple[Any, Any]]:
    """The kinds of outcome that differ although no effect says so.

    Where exceptions are stated and something ``raises``, or the program may catch what does, all else follows: a
    side may raise earlier.
    """
    if Effect.EXCEPTIONS in effects and (raises or any(kind.startswith("exception") for kind in kinds)):
        return {}
    return {kind: both for kind, both in kinds.items() if SHOWN_BY[kind.split()[0]] not in effects}
