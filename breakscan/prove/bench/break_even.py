"""Which variant takes the least time in all, by the number of calls: compiling longer pays only if there are enough."""

from __future__ import annotations

import math
from collections.abc import Sequence

from breakscan.prove.bench.best import is_slower, spent_on_compiling
from breakscan.prove.bench.result import BenchRow, LeastTime, MeasurementStatus
from breakscan.prove.worker import timing as measure
from breakscan.prove.worker.timing import Ratio

EAGER = "eager"


def least_time(rows: Sequence[BenchRow], eager_seconds: float, same: Ratio) -> tuple[LeastTime, ...]:
    """Returns the variants that take the least time in all, each with the first number of calls for which it does.

    Eager comes first. A variant follows another only if its step is faster by more than noise.
    """
    faster = [row for row in rows if row.status is MeasurementStatus.MEASURED and row.pays_after_calls is not None]
    found = [LeastTime(EAGER, 1)]
    last: BenchRow | None = None
    while True:
        least = max(measure.LEAST, measure.apart(same))
        later = [row for row in faster if last is None or is_slower(last, row, least)]
        starts = {row.label: _starts(row, last, eager_seconds) for row in later}
        if not starts:
            return tuple(found)
        first = min(later, key=lambda row: (starts[row.label], -_speed(row)))
        found.append(LeastTime(first.label, max(starts[first.label], found[-1].from_call)))
        last = first


def _starts(row: BenchRow, before: BenchRow | None, eager_seconds: float) -> int:
    """Returns the number of calls for which a variant takes no longer in all than another, or than eager."""
    if before is None:
        assert row.pays_after_calls is not None
        return row.pays_after_calls
    more = spent_on_compiling(row) - spent_on_compiling(before)
    # Steps by their ratios: each was timed beside eager steps of its own process.
    gained = eager_seconds / _speed(before) - eager_seconds / _speed(row)
    return max(1, math.ceil(more / gained)) if gained > 0 else 1


def _speed(row: BenchRow) -> float:
    assert row.ratio is not None
    return row.ratio.median
