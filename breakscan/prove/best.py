"""Chooses a variant, and says when it pays and how to write it."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence

from breakscan.explanation.breaks import BreakSite
from breakscan.prove import faster as measure
from breakscan.prove.bench_result import OWN, BenchRow, LeastTime, MeasurementStatus
from breakscan.prove.faster import Ratio
from breakscan.prove.protocol import AvailableChoices
from breakscan.prove.variants import code_for

_NAMED = re.compile(r"config\.(?P<name>[a-z]\w*)\b`?\s*(?:=|to)\s*`?(?P<value>True|False)\b")
_RISKY = "silent incorrectness"
_NOT_NAMED = {"Unsupported Tensor.backward() call": {"dynamo.trace_autograd_ops": True}}
"""Settings that Dynamo's hints leave out, by the type of the break."""


def flags_for(breaks: Iterable[BreakSite]) -> dict[str, object]:
    """Returns the settings that the hints of these breaks name, with their values."""
    found: dict[str, object] = {}
    for site in breaks:
        hints = " ".join(site.hints)
        if _RISKY not in hints:
            found |= {f"dynamo.{one['name']}": one["value"] == "True" for one in _NAMED.finditer(hints)}
        found |= _NOT_NAMED.get(site.gb_type, {})
    return found


def as_written(settings: Mapping[str, object]) -> str:
    """Returns a setting as a line of code: ``torch._dynamo.config.capture_scalar_outputs = True``."""
    lines = []
    for key, value in settings.items():
        room, _, name = key.partition(".")
        lines.append(f"torch._{room}.config.{name} = {value!r}")
    return "; ".join(lines)


AS_CHEAP = 1.25
"""The program's own variant is kept if its cold cost is at most this many times that of the cheapest variant."""


def pays_after(row: BenchRow, same: Ratio) -> int | None:
    """Returns the number of calls, including the first, after which the time spent on compiling is recovered.

    Returns None if a step is not faster than eager.
    """
    spent = row.spent_on_compiling
    if row.ratio is None or row.eager_seconds is None or row.step_seconds is None or spent is None:
        return None
    if row.busy or row.ratio.is_noisy or not measure.is_faster(row.ratio, same):
        return None
    return max(1, math.ceil(spent / (row.eager_seconds - row.step_seconds)))


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
    fastest = max(faster, key=lambda row: _ratio(row).low)
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
    return row.spent_on_compiling or 0.0


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
    more = _cost(row) - _cost(before)
    # Steps by their ratios: each was timed beside eager steps of its own process.
    gained = eager_seconds / _speed(before) - eager_seconds / _speed(row)
    return max(1, math.ceil(more / gained)) if gained > 0 else 1


def _speed(row: BenchRow) -> float:
    assert row.ratio is not None
    return row.ratio.median
