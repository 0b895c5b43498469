"""Words for the captured calls on which a measurement rests."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from breakscan.model.words import counted
from breakscan.report.shared.printable import visible


def captured_words(callables: Mapping[str, int], backward: Collection[str]) -> str:
    """``3 calls of Model with their backward pass, 1 call of evaluate``. ``backward`` names those with one."""
    return ", ".join(
        f"{counted(count, 'call')} of {visible(name)}{_backward(count) if name in backward else ''}"
        for name, count in callables.items()
    )


def _backward(count: int) -> str:
    return f" with {'its' if count == 1 else 'their'} backward pass"
