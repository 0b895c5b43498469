"""Sizes of memory in words."""

from __future__ import annotations


def megabytes(count: int) -> str:
    """``1,374 MB``."""
    return f"{count / 1e6:,.0f} MB"


def bytes_in_words(count: int) -> str:
    """``12 B``, ``1.4 MB``, ``2.0 GB``."""
    for size, unit in ((1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if count >= size:
            return f"{count / size:.1f} {unit}"
    return f"{count} B"
