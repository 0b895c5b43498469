"""Chooses a variant, and says when it pays and how to write it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from breakscan.prove.bench.hinted_settings import as_written
from breakscan.prove.bench.regional import code_for
from breakscan.prove.bench.result import OWN, BenchRow, MeasurementStatus
from breakscan.prove.worker import timing as measure
from breakscan.prove.worker.protocol import AvailableChoices
from breakscan.prove.worker.timing import Ratio

AS_CHEAP = 1.25
"""The program's own variant is kept if its cold cost is at most this many times that of the cheapest variant."""


def pays_after(row: BenchRow, same: Ratio) -> int | None:
    """Returns the number of calls, including the first, after which the time spent on compiling is recovered.

    Returns None if a step is not faster than eager.
    """
    if row.ratio is None or row.step_seconds is None or row.cold_seconds is None or row.cold_steps is None:
        return None
    if not measure.is_faster(row.ratio, same):
        return None
    eager = row.step_seconds * row.ratio.median
    return max(1, math.ceil(spent_on_compiling(row) / (eager - row.step_seconds)))


def spent_on_compiling(row: BenchRow) -> float:
    """Returns the seconds that the first steps take longer than later ones."""
    assert row.cold_seconds is not None
    assert row.cold_steps is not None
    assert row.step_seconds is not None
    return row.cold_seconds - row.cold_steps * row.step_seconds


def best_of(rows: Sequence[BenchRow], same: Ratio) -> tuple[BenchRow | None, tuple[BenchRow, ...]]:
    """Returns the variant to choose, and all that are as fast within noise, including it.

    It is the one whose first calls cost least, or the program's own if that costs about as little. Returns None if none
    is faster than eager.
    """
    faster = [
        row
        for row in rows
        if row.status is MeasurementStatus.MEASURED and row.ratio is not None and measure.is_faster(row.ratio, same)
    ]
    if not faster:
        return None, ()
    fastest = max(faster, key=lambda row: _ratio(row).median)
    least = max(measure.LEAST, measure.apart(same))
    as_fast = [row for row in faster if not is_slower(row, fastest, least)]
    cheapest = min(as_fast, key=_cost)
    own = next((row for row in as_fast if row.label == OWN), None)
    best = own if own is not None and _cost(own) <= AS_CHEAP * _cost(cheapest) else cheapest
    return best, tuple(as_fast)


def write_for(
    row: BenchRow, callables: Mapping[str, int], asked: bool, available: AvailableChoices | None = None
) -> str | None:
    """Returns the code for a variant; None if the program already compiles this way, unless ``--compile`` asked for it.

    ``available`` has the blocks of the program, which the code of a variant with a region names.
    """
    if row.variant.regional is not None:
        return code_for(row.variant.regional, available) if available is not None else None
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


def is_slower(row: BenchRow, fastest: BenchRow, least: float) -> bool:
    """Returns whether a variant is slower than another.

    Each was timed against eager runs in its own process. A machine that was faster at that time changes the ratio, and
    it changes the step as well, so both have to agree.
    """
    if row.step_seconds is None or fastest.step_seconds is None:
        return False
    by_ratio = _ratio(fastest).low > least * _ratio(row).high
    return by_ratio and row.step_seconds > least * fastest.step_seconds


def _ratio(row: BenchRow) -> Ratio:
    assert row.ratio is not None
    return row.ratio


def _cost(row: BenchRow) -> float:
    return row.cold_seconds or 0.0
