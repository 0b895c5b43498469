"""Combinations of choices, the likeliest first."""

from __future__ import annotations

from collections.abc import Iterator, Sequence


def combinations(sizes: Sequence[int]) -> Iterator[tuple[int, ...]]:
    """A number below each of the sizes, in all ways; those with the least sum first."""
    for total in range(sum(size - 1 for size in sizes) + 1):
        yield from _with_sum(sizes, total)


def _with_sum(sizes: Sequence[int], total: int) -> Iterator[tuple[int, ...]]:
    if not sizes:
        if total == 0:
            yield ()
        return
    rest = sum(size - 1 for size in sizes[1:])
    for first in range(max(0, total - rest), min(sizes[0] - 1, total) + 1):
        for others in _with_sum(sizes[1:], total - first):
            yield (first, *others)
