"""Reports of surveys: for terminals, Markdown, and JSON by ``schemas/survey.schema.json`` and ``survey-diff``."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any, NamedTuple, TextIO

from rich.table import Table
from rich.text import Text

from breakscan.model.words import bytes_in_words, clipped, counted, duration, listed
from breakscan.report import markdown
from breakscan.report.console import plain_table, print_page, report_console
from breakscan.report.measured_page import MeasuredPage
from breakscan.report.printable import picked, visible, write_json_report
from breakscan.survey.overview import (
    CauseChange,
    CauseCount,
    CauseKey,
    CauseKind,
    ChangeGroup,
    ConditionCount,
    EndingGroup,
    SurveyComparison,
    SurveyOverview,
    Tuned,
    UnitRow,
    change_groups,
)


def counted_share(count: ConditionCount) -> str:
    """``12 of 40 units that ran break the graph or run eager (30%); 3 did not run``."""
    waiting = f"; {count.waiting} still to run" if count.waiting else ""
    if not count.ran:
        return f"none of {counted(count.units, 'unit')} ran{waiting}"
    lost = count.units - count.ran - count.waiting
    others = f"; {lost} did not run{waiting}" if lost else waiting
    ran = f"{count.broken} of {counted(count.ran, 'unit')} that ran"
    return f"{ran} break the graph or run eager ({_share(count)}){others}"


def _share(count: ConditionCount) -> str:
    return f"{count.broken / count.ran:.0%}" if count.ran else ""


LONGEST = 160  # characters of a reason
KIND_WORDS = {CauseKind.BREAK: "breaks", CauseKind.EAGER: "eager functions", CauseKind.RECOMPILE: "recompiles"}


def cause_name(cause: CauseKey) -> str:
    """The rule or the reason."""
    return clipped(cause.name, LONGEST) or "no rule knows why"


class SurveyTable(NamedTuple):
    """A table of a report.  The first cell names what a row is about."""

    title: str
    columns: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]


def common_tables(report: SurveyOverview) -> tuple[SurveyTable, SurveyTable, SurveyTable]:
    """Tables of what units have in common: causes, places, and reasons for not running."""
    causes = list(map(_cause_cells, report.causes))
    places = [(f"{one.path}:{one.line}", one.rule or "", str(one.units)) for one in report.places]
    endings = [(clipped(one.said, LONGEST) or "nothing", one.status, str(one.units)) for one in report.endings]
    return (
        SurveyTable("Causes", ("cause", "of", "units", "places", "costs most in", "costs in all"), causes),
        SurveyTable("Places", ("place", "rule", "units"), places),
        SurveyTable("Why units did not run", ("the last that it said", "status", "units"), endings),
    )


def conditions_table(report: SurveyOverview) -> SurveyTable:
    """Units under the same conditions."""
    rows = [
        (
            one.torch or "none",
            " ".join(one.conditions) or "all",
            *map(str, (one.units, one.ran, one.broken)),
            _share(one),
        )
        for one in report.counts
    ]
    return SurveyTable("Conditions", ("torch", "conditions", "units", "ran", "broken", "share"), rows)


def units_table(report: SurveyOverview) -> SurveyTable:
    columns = "unit conditions torch status breaks eager recompiles graphs costs compile memory proved speed tuned"
    return SurveyTable("Units", tuple(columns.split()), list(map(_unit_cells, report.rows)))


def _cause_cells(count: CauseCount) -> tuple[str, ...]:
    what = " compiling" if count.cause.kind is CauseKind.RECOMPILE else ""
    return (
        cause_name(count.cause),
        KIND_WORDS[count.cause.kind],
        str(count.units),
        str(count.places),
        str(count.costs_most) if count.costs_most else "",
        f"{duration(count.seconds)}{what}" if count.seconds else "",
    )


def _unit_cells(row: UnitRow) -> tuple[str, ...]:
    compile_seconds = "" if row.compile_seconds is None else f"{row.compile_seconds:.1f} s"
    return (
        row.name,
        " ".join(row.conditions),
        row.torch or "",
        row.status,
        *("" if count is None else str(count) for count in (row.breaks, row.eager, row.recompiles, row.graphs)),
        f"{duration(row.cost)}, most {clipped(row.costliest, 40)}" if row.cost and row.costliest else "",
        compile_seconds,
        "" if row.peak is None else bytes_in_words(row.peak),
        "" if row.proved is None else str(row.proved),
        "" if row.speed is None else f"{row.speed:.2f}×",
        "" if row.tuned is None else _tuned_words(row.tuned),
    )


def _tuned_words(tuned: Tuned) -> str:
    """``setting: 4 breaks → 0, 1.20×``."""
    names = ("break", "recompile", "eager function")
    counts = zip(names, tuned.before, tuned.after, strict=bool(tuned.changes))
    changed = [f"{counted(was, name)} → {now}" for name, was, now in counts if was != now]
    speed = [f"{tuned.speed:.2f}×"] if tuned.speed is not None else []
    return f"{' and '.join(tuned.changes)}: {', '.join(changed + speed)}" if tuned.changes else "nothing better"


def _what_changed(group: ChangeGroup) -> str:
    """``BRK401: breaks 0 → 1``, ``ok → failed``: the numbers are of all its units."""
    if isinstance(group, EndingGroup):
        return f"{group.before} → {group.after}"
    before, after = (sum(counts) for counts in zip(*((one.before, one.after) for one in group.changes), strict=True))
    return f"{cause_name(group.cause)}: {KIND_WORDS[group.cause.kind]} {before} → {after}"


def _which_units(units: Sequence[UnitRow]) -> str:
    """``zoo:small (eval eager cpu)``; ``80 units: albert, bert and 38 more names``."""
    if len(units) == 1:
        conditions = f" ({' '.join(units[0].conditions)})" if units[0].conditions else ""
        return f"{units[0].name}{conditions}"
    return f"{counted(len(units), 'unit')}: {listed([unit.name for unit in units], 'name', most=4)}"


def _where(group: ChangeGroup) -> str:
    """The functions, or the last that the units said."""
    if isinstance(group, EndingGroup):
        return group.said
    places = ((one.function, one.path) for one in group.changes)
    return listed([" ".join(filter(None, (name, path and f"({path})"))) for name, path in places], "function")


def _comparison_summary(found: SurveyComparison) -> str:
    """``3 units worse, 5 changed otherwise, 40 as before``."""
    worse = sum(change.is_regression for change in found.changes)
    parts = [f"{counted(worse, 'unit')} worse", f"{len(found.changes) - worse} changed otherwise"]
    parts.append(f"{found.unchanged} as before")
    alone = ((found.only_before, "before"), (found.only_after, "after"))
    return ", ".join([*parts, *(f"{len(units)} only {when}" for units, when in alone if units)])


MOST_SHOWN = 15  # causes, places, files and reasons that are shown
WIDEST = 400  # cells of a line in a file


def write_survey_terminal(report: SurveyOverview, stream: TextIO) -> None:
    """Writes the tables; all units come first, what they have in common last."""
    console = report_console(stream)
    if not console.is_terminal:
        console.width = WIDEST  # many columns: in a file, no line has to be short
    print_page(_rich_table(units_table(report)), console)
    for table in reversed(common_tables(report)):
        if table.rows:
            console.print()
            print_page(_rich_table(table._replace(rows=table.rows[:MOST_SHOWN])), console)
    console.print()
    if tuned := [row.tuned for row in report.rows if row.tuned is not None]:
        gained = sum(bool(one.changes) for one in tuned)
        console.print(f"tune found a better program for {gained} of {counted(len(tuned), 'unit')}")
    for count in report.counts:
        conditions = ", ".join((*count.conditions, f"torch {count.torch}" if count.torch else "no torch"))
        console.print(Text(visible(f"{conditions}: {counted_share(count)}")))


def _rich_table(content: SurveyTable) -> Table:
    table = plain_table(*content.columns)
    for row in content.rows:
        table.add_row(*(Text(visible(cell)) for cell in row))
    return table


SCHEMA = 1


def write_survey_json(report: SurveyOverview, stream: TextIO) -> None:
    causes = list(map(_with_cause, report.causes))
    shown = {"units": report.rows, "conditions": report.counts, "causes": causes, "statuses": report.statuses}
    write_json_report(SCHEMA, {**shown, **picked(report, "places endings")}, stream)


def write_survey_diff_json(found: SurveyComparison, stream: TextIO) -> None:
    changes = [
        {
            **picked(change, "before after"),
            "regression": change.is_regression,
            "causes": list(map(_with_cause, change.causes)),
        }
        for change in found.changes
    ]
    write_json_report(SCHEMA, {"changes": changes, **picked(found, "unchanged only_before only_after")}, stream)


def _with_cause(one: CauseCount | CauseChange) -> dict[str, Any]:
    """Return the fields with those of the cause among them."""
    values = asdict(one)
    return {**values.pop("cause"), **values}


MOST_ROWS = 25  # rows of each table but that of units: a job summary holds 1 MB


def write_survey_markdown(report: SurveyOverview, stream: TextIO) -> None:
    """Writes what the units have in common, then a table of them."""
    stream.write(f"# breakscan survey\n\n{_markdown_table(conditions_table(report))}")
    for table in common_tables(report):
        if table.rows:
            stream.write(f"\n## {table.title}\n\n{_markdown_table(table._replace(rows=table.rows[:MOST_ROWS]))}")
            if len(table.rows) > MOST_ROWS:
                stream.write(f"\n{counted(len(table.rows) - MOST_ROWS, 'more row')}.\n")
    stream.write(f"\n## Units\n\n{_markdown_table(units_table(report))}")


def survey_diff_page(found: SurveyComparison) -> MeasuredPage:
    """The changes by cause, regressions first."""
    lines = [
        (
            f"{group.direction.value}: ",
            visible(": ".join(filter(None, (f"{_what_changed(group)} in {_which_units(group.units)}", _where(group))))),
        )
        for group in change_groups(found.changes)
    ]
    pairs = sorted({(one.before.torch, one.after.torch) for one in found.changes}, key=str)
    versions = [f"torch {was or 'none'} → {now or 'none'}" for was, now in pairs if was != now]
    headline = visible(", ".join([_comparison_summary(found), *versions]))
    return MeasuredPage("survey diff", headline, (), (), paragraphs=lines)


def _markdown_table(table: SurveyTable) -> str:
    lines = [markdown.row(markdown.code(first), *map(markdown.prose, others)) for first, *others in table.rows]
    return markdown.table_head(*table.columns) + "".join(lines)
