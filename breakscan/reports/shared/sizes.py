"""Sizes of memory in words."""

from __future__ import annotations


def megabytes(count: int) -> str:
    """``1,374 MB``."""
    return f"{count / 1e6:,.0f} MB"
