"""Which variant to choose, when it pays, and what to write for it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from breakscan.bench.hinted_settings import as_written
from breakscan.bench.result import OWN, BenchRow, MeasurementStatus
from breakscan.worker import timing as measure
from breakscan.worker.timing import Ratio

AS_CHEAP = 1.25
"""Times the cheapest way's cold cost, up to which the program's own way is kept."""


def pays_after(row: BenchRow, same: Ratio) -> int | None:
    """The number of calls, from the first on, with which the time spent compiling is won back.  None where a step is
    not faster than eager."""
    if row.ratio is None or row.step_seconds is None or row.cold_seconds is None or row.cold_steps is None:
        return None
    if not measure.is_faster(row.ratio, same):
        return None
    eager = row.step_seconds * row.ratio.median
    spent = row.cold_seconds - row.cold_steps * row.step_seconds
    return max(1, math.ceil(spent / (eager - row.step_seconds)))


def best_of(rows: Sequence[BenchRow], same: Ratio) -> tuple[BenchRow | None, tuple[BenchRow, ...]]:
    """The way to choose, and those that are as fast within noise, it among them: the one of which the first calls
    cost least; the program's own where that costs about as little.  None where none is faster than eager."""
    faster = [
        row
        for row in rows
        if row.status is MeasurementStatus.MEASURED and row.ratio is not None and measure.is_faster(row.ratio, same)
    ]
    if not faster:
        return None, ()
    fastest = max(faster, key=lambda row: _ratio(row).median)
    least = max(measure.LEAST, measure.apart(same))
    as_fast = [row for row in faster if not _is_slower(row, fastest, least)]
    cheapest = min(as_fast, key=_cost)
    own = next((row for row in as_fast if row.label == OWN), None)
    best = own if own is not None and _cost(own) <= AS_CHEAP * _cost(cheapest) else cheapest
    return best, tuple(as_fast)


def write_for(row: BenchRow, callables: Mapping[str, int], asked: bool) -> str | None:
    """The line of code for a way; None where the program compiles so already: unless ``--compile`` asked for it."""
    settings = as_written(row.variant.settings)
    options = row.variant.options
    if options is None and not asked:
        return settings or None
    names = list(callables)
    subject = names[0] if len(names) == 1 and names[0].isidentifier() and names[0][:1].islower() else "model"
    arguments = "".join(
        f', {key}="{value}"' if isinstance(value, str) else f", {key}={value}" for key, value in (options or {}).items()
    )
    call = f"torch.compile({subject}{arguments})"
    return f"{settings}; {call}" if settings else call


def _is_slower(row: BenchRow, fastest: BenchRow, least: float) -> bool:
    """Each was timed against eager runs of its own: a machine that was faster then changes the ratio, as it does the
    step.  So both have to tell."""
    if row.step_seconds is None or fastest.step_seconds is None:
        return False
    by_ratio = _ratio(fastest).low > least * _ratio(row).high
    return by_ratio and row.step_seconds > least * fastest.step_seconds


def _ratio(row: BenchRow) -> Ratio:
    assert row.ratio is not None
    return row.ratio


def _cost(row: BenchRow) -> float:
    return row.cold_seconds or 0.0
