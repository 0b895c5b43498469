"""Whether a change states a difference between two results: by its kind, not by its words."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from breakscan.fix.support.difference import EXCEPTIONS, Effect
from breakscan.prove.worker.difference import Change, Part, ResultDifference

_OF_PARTS: Mapping[Part, Effect] = {
    Part.GRADIENT: Effect.GRADIENTS,
    Part.STATE: Effect.STATE,
    Part.RANDOM: Effect.RANDOM,
}
_OF_OUTPUTS: Mapping[Change, Effect] = {
    Change.DTYPE: Effect.DTYPES,
    Change.SHAPE: Effect.SHAPES,
    Change.ELEMENT: Effect.VALUES,
    Change.ERROR: Effect.VALUES,
    Change.ALIAS: Effect.STORAGE,
    Change.MISSING: Effect.TYPES,
    Change.NEW: Effect.TYPES,
}


def is_stated(difference: ResultDifference, effects: Collection[Effect]) -> bool:
    """Whether one of the effects of a change is this difference."""
    if difference.change is Change.TEXT and difference.part is Part.OUTPUT:
        # The text of a tensor is empty.
        return (Effect.VALUES if difference.was and difference.now else Effect.TYPES) in effects
    if difference.part is Part.EXCEPTION:
        return not EXCEPTIONS.isdisjoint(effects)
    effect = _OF_PARTS.get(difference.part) or _OF_OUTPUTS.get(difference.change)
    return effect in effects
