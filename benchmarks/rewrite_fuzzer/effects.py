"""Which differences between two outcomes an edit has stated: by the kind of what differs, not by its words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from breakscan.rewrite_support.difference import Effect

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
