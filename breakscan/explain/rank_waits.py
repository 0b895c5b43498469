"""Long passes in which a rank waited for another one that compiled."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from breakscan.explain.compiled import LongPass
from breakscan.explain.explanation import BreakSite, Explanation

_Span = tuple[float, float]
"""Seconds since the epoch."""


def with_waits(by_rank: Mapping[int, Explanation]) -> dict[int, Explanation]:
    """The explanations, with the rank that was waited for at passes that took long."""
    spans = {rank: list(_compiling(told)) for rank, told in by_rank.items()}
    return {
        rank: replace(
            told,
            breaks=[
                _with_wait(site, told.began, {other: spans[other] for other in spans if other != rank})
                for site in told.breaks
            ],
        )
        for rank, told in by_rank.items()
    }


def _compiling(told: Explanation) -> Iterable[_Span]:
    for one in told.compiles:
        if told.began is not None:
            yield told.began + one.at, told.began + one.at + one.seconds


def _with_wait(site: BreakSite, began: float | None, others: Mapping[int, Iterable[_Span]]) -> BreakSite:
    longest = site.price and site.price.longest
    if site.price is None or not longest or began is None:
        return site
    meanwhile = {rank: _within(spans, longest, began) for rank, spans in others.items()}
    rank = max(meanwhile, key=lambda one: meanwhile[one], default=None)
    # Where another rank compiled for less than half of the time, it may be chance.
    if rank is None or meanwhile[rank] < longest.seconds / 2:
        return site
    return replace(site, price=replace(site.price, longest=replace(longest, for_rank=rank)))


def _within(spans: Iterable[_Span], longest: LongPass, began: float) -> float:
    """Seconds of the spans that lie within the pass."""
    start, end = began + longest.at, began + longest.at + longest.seconds
    return sum(max(0.0, min(end, last) - max(start, first)) for first, last in spans)
