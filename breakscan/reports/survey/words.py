"""What reports of surveys say."""

from __future__ import annotations

from collections.abc import Iterator

from breakscan.reports.shared.sizes import bytes_in_words
from breakscan.reports.shared.wording import counted
from breakscan.survey.comparison import CauseChange, SurveyComparison, UnitChange
from breakscan.survey.overview import Cause, ConditionCount, PlaceCount, UnitRow


def conditions_words(conditions: tuple[str, ...], torch: str | None) -> str:
    """``eval, inductor, cpu, torch 2.13.0``."""
    return ", ".join((*conditions, f"torch {torch}" if torch else "no torch"))


def counted_share(count: ConditionCount) -> str:
    """``12 of 40 units that ran break the graph or run eager (30%); 3 did not run``."""
    if not count.ran:
        return f"none of {counted(count.units, 'unit')} ran"
    share = f" ({count.broken / count.ran:.0%})"
    others = f"; {count.units - count.ran} did not run" if count.ran < count.units else ""
    return f"{count.broken} of {counted(count.ran, 'unit')} that ran break the graph or run eager{share}{others}"


CAUSE_COLUMNS = ("cause of breaks", "units", "places")
PLACE_COLUMNS = ("place", "rule", "units")
UNIT_COLUMNS = (
    *("unit", "conditions", "torch", "status", "breaks", "eager", "recompiles", "graphs"),
    *("compile", "memory", "fix", "speed"),
)


def cause_cells(cause: Cause) -> tuple[str, ...]:
    """The cells of a cause."""
    return cause.rule or cause.reason or "no reason is known", str(cause.units), str(cause.places)


def place_cells(place: PlaceCount) -> tuple[str, ...]:
    """The cells of a place."""
    return f"{place.path}:{place.line}", place.rule or "", str(place.units)


def unit_cells(row: UnitRow) -> tuple[str, ...]:
    """The cells of a unit."""
    compile_seconds = "" if row.compile_seconds is None else f"{row.compile_seconds:.1f} s"
    proved = "" if row.proved is None else f", {row.proved} proved"
    return (
        row.name,
        " ".join(row.conditions),
        row.torch or "",
        row.status,
        *("" if count is None else str(count) for count in (row.breaks, row.eager, row.recompiles, row.graphs)),
        compile_seconds,
        "" if row.peak is None else bytes_in_words(row.peak),
        "" if row.offered is None else f"{row.offered}{proved}",
        "" if row.speed is None else f"{row.speed:.2f}×",
    )


def change_lines(change: UnitChange) -> Iterator[str]:
    """A unit that has changed, then a line for each cause."""
    was, now = change.before, change.after
    sign = "worse" if change.is_regression else "changed"
    versions = "" if was.torch == now.torch else f", torch {was.torch} → {now.torch}"
    conditions = f" ({' '.join(was.conditions)}{versions})" if was.conditions or versions else ""
    yield f"{sign}: {now.name}{conditions}: {_counts(was, now)}"
    for cause in change.causes:
        yield f"    {_cause(cause)}"


def _counts(was: UnitRow, now: UnitRow) -> str:
    if was.status != now.status:
        return f"{was.status} → {now.status}"
    names = (("breaks", was.breaks, now.breaks), ("eager", was.eager, now.eager))
    parts = [f"{name} {before} → {after}" for name, before, after in names if before != after]
    if was.recompiles != now.recompiles:
        parts.append(f"recompiles {was.recompiles} → {now.recompiles}")
    return ", ".join(parts) or "breaks elsewhere"


def _cause(cause: CauseChange) -> str:
    where = " ".join(filter(None, (cause.function, f"({cause.path})" if cause.path else None)))
    return f"{cause.rule or cause.reason}: {cause.before} → {cause.after} in {where}"


def comparison_summary(found: SurveyComparison) -> str:
    """``3 units are worse, 5 changed otherwise, 40 are as before``."""
    worse = sum(change.is_regression for change in found.changes)
    parts = [f"{counted(worse, 'unit')} worse", f"{len(found.changes) - worse} changed otherwise"]
    parts.append(f"{found.unchanged} as before")
    if found.only_before:
        parts.append(f"{len(found.only_before)} only before")
    if found.only_after:
        parts.append(f"{len(found.only_after)} only after")
    return ", ".join(parts)
