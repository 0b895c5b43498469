"""What reports of surveys say."""

from __future__ import annotations

from breakscan.model.words import bytes_in_words, counted, duration, sentence
from breakscan.report.shared.markdown_text import clipped
from breakscan.survey.overview import CauseCount, ConditionCount, EndingCount, FileCount, PlaceCount, SurveyOverview
from breakscan.survey.unit_row import WAITING, CauseKey, CauseKind, UnitRow


def conditions_words(conditions: tuple[str, ...], torch: str | None) -> str:
    """``eval, inductor, cpu, torch 2.13.0``."""
    return ", ".join((*conditions, f"torch {torch}" if torch else "no torch"))


def counted_share(count: ConditionCount) -> str:
    """``12 of 40 units that ran break the graph or run eager (30%); 3 did not run``."""
    waiting = f"; {count.waiting} still to run" if count.waiting else ""
    if not count.ran:
        return f"none of {counted(count.units, 'unit')} ran{waiting}"
    lost = count.units - count.ran - count.waiting
    others = f"; {lost} did not run{waiting}" if lost else waiting
    ran = f"{count.broken} of {counted(count.ran, 'unit')} that ran"
    return f"{ran} break the graph or run eager ({_share(count)}){others}"


def survey_headline(report: SurveyOverview) -> str:
    """What came of all units together."""
    rows = report.rows
    ran, waiting = sum(row.breaks is not None for row in rows), sum(row.status == WAITING for row in rows)
    broken = sum(row.breaks is not None and not row.is_whole for row in rows)
    return sentence(counted_share(ConditionCount((), None, len(rows), waiting, ran, broken)))


def _share(count: ConditionCount) -> str:
    return f"{count.broken / count.ran:.0%}" if count.ran else ""


LONGEST = 160
"""Characters of a reason."""
CAUSE_COLUMNS = ("cause", "of", "units", "places", "costs most in", "costs in all")
PLACE_COLUMNS = ("place", "rule", "units")
FILE_COLUMNS = ("file", "units", "places", "rules")
CONDITION_COLUMNS = ("torch", "conditions", "units", "ran", "broken", "share")
ENDING_COLUMNS = ("the last that it said", "status", "units")
UNIT_COLUMNS = (
    *("unit", "conditions", "torch", "status", "breaks", "eager", "recompiles", "graphs"),
    *("costs", "compile", "memory", "check", "fix", "speed"),
)
KIND_WORDS = {CauseKind.BREAK: "breaks", CauseKind.EAGER: "eager functions", CauseKind.RECOMPILE: "recompiles"}


def cause_name(cause: CauseKey) -> str:
    """The rule or the reason."""
    return clipped(cause.name, LONGEST) or "no rule knows why"


def cause_cells(count: CauseCount) -> tuple[str, ...]:
    """The cells of a cause."""
    what = " compiling" if count.cause.kind is CauseKind.RECOMPILE else ""
    return (
        cause_name(count.cause),
        KIND_WORDS[count.cause.kind],
        str(count.units),
        str(count.places),
        str(count.costs_most) if count.costs_most else "",
        f"{duration(count.seconds)}{what}" if count.seconds else "",
    )


def place_cells(place: PlaceCount) -> tuple[str, ...]:
    """The cells of a place."""
    return f"{place.path}:{place.line}", place.rule or "", str(place.units)


def file_cells(file: FileCount) -> tuple[str, ...]:
    """The cells of a file."""
    return file.path, str(file.units), str(file.places), ", ".join(file.rules)


def condition_cells(count: ConditionCount) -> tuple[str, ...]:
    """The cells of units under the same conditions, or of all that have one torch."""
    numbers = (str(count.units), str(count.ran), str(count.broken))
    return count.torch or "none", " ".join(count.conditions) or "all", *numbers, _share(count)


def ending_cells(ending: EndingCount) -> tuple[str, ...]:
    """The cells of units that ended alike."""
    return clipped(ending.said, LONGEST) or "nothing", ending.status, str(ending.units)


def unit_cells(row: UnitRow) -> tuple[str, ...]:
    """The cells of a unit."""
    compile_seconds = "" if row.compile_seconds is None else f"{row.compile_seconds:.1f} s"
    proved = "" if row.proved is None else f", {row.proved} proved"
    seen = f", {row.seen} seen" if row.seen else ""
    return (
        row.name,
        " ".join(row.conditions),
        row.torch or "",
        row.status,
        *("" if count is None else str(count) for count in (row.breaks, row.eager, row.recompiles, row.graphs)),
        f"{duration(row.cost)}, most {clipped(row.costliest, 40)}" if row.cost and row.costliest else "",
        compile_seconds,
        "" if row.peak is None else bytes_in_words(row.peak),
        "" if row.findings is None else f"{row.findings}{seen}",
        "" if row.offered is None else f"{row.offered}{proved}",
        "" if row.speed is None else f"{row.speed:.2f}×",
    )
