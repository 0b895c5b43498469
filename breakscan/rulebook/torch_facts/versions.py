"""Which file of facts a torch version reads."""

from __future__ import annotations

from collections.abc import Collection


def nearest(version: str, measured: Collection[str]) -> str:
    """The version itself where it was measured, else the last one before it, else the first one after it."""
    ordered = sorted(measured, key=_order)
    before = [one for one in ordered if _order(one) <= _order(version)]
    return before[-1] if before else ordered[0]


def _order(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split(".") if part.isdigit())
