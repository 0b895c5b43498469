"""What is kept for backward passes, in words."""

from __future__ import annotations

from breakscan.explain.saved_memory import SavedMemory
from breakscan.model.words import bytes_in_words, counted, place

WORTH_A_WORD = 1_000_000
"""Bytes."""
_MOST_LINES = 3


def saved_sentence(saved: SavedMemory) -> str | None:
    """What one call keeps, and the lines that keep most; None where that is little."""
    if saved.bytes < WORTH_A_WORD:
        return None
    lines = [f"{place(one.line)} {bytes_in_words(one.bytes)}" for one in saved.lines if one.line][:_MOST_LINES]
    inputs = f", beside {bytes_in_words(saved.inputs)} of inputs and parameters" if saved.inputs else ""
    most = f"; most at {', '.join(lines)}" if lines else ""
    return f"{saved_bytes_in_words(saved.bytes, saved.unknown)} until the backward of a call has run{inputs}{most}"


def saved_bytes_in_words(count: int, unknown: int) -> str:
    """``1.2 MB``, ``1.2 MB and 2 values of unknown size``."""
    values = counted(unknown, "value")
    if unknown and not count:
        return f"{values} of unknown size"
    return f"{bytes_in_words(count)}{f' and {values} of unknown size' if unknown else ''}"
