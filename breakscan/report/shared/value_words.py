"""The values that a recorded run saw, in words."""

from __future__ import annotations

from collections.abc import Mapping

from breakscan.fix.result import RestsOn
from breakscan.model.observations import TensorSeen, ValueSeen
from breakscan.model.words import counted

MOST_NAMES = 4


def tensor_in_words(seen: TensorSeen) -> str:
    """``float32, 2-D``."""
    ranks = [f"{rank}-D" for rank in seen.ranks]
    gradient = ", with gradient" if True in seen.requires_grad else ""
    gradient += " or without" if gradient and False in seen.requires_grad else ""
    return f"{' or '.join(seen.dtypes)}, {' or '.join(ranks)}{gradient}"


def value_in_words(seen: ValueSeen) -> str:
    """``float32, 2-D``, ``True``, ``a list``."""
    if seen.tensor is not None:
        return tensor_in_words(seen.tensor)
    return " or ".join(seen.texts if seen.texts is not None else seen.types)


def rests_on_words(values: RestsOn) -> str:
    """``holds for what was observed: x float32, 2-D, in 40 calls``."""
    words = _values_in_words(values.values)
    return f"holds for what was observed{f': {words},' if words else ''} in {counted(values.calls, 'call')}"


def _values_in_words(values: Mapping[str, ValueSeen]) -> str:
    """``x float32, 2-D; flag True``; empty for none."""
    shown = [f"{name} {value_in_words(value)}" for name, value in list(values.items())[:MOST_NAMES]]
    more = len(values) - MOST_NAMES
    return "; ".join([*shown, *([f"{more} more"] if more > 0 else [])])
