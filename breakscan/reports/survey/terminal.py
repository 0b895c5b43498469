"""A survey as tables: what breaks under which conditions, why, where, and each unit."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TextIO

from rich.table import Table
from rich.text import Text

from breakscan.reports.shared.console import print_page, report_console
from breakscan.reports.shared.printable import visible
from breakscan.reports.survey.words import (
    CAUSE_COLUMNS,
    PLACE_COLUMNS,
    UNIT_COLUMNS,
    cause_cells,
    change_lines,
    comparison_summary,
    conditions_words,
    counted_share,
    place_cells,
    unit_cells,
)
from breakscan.survey.comparison import SurveyComparison
from breakscan.survey.overview import SurveyOverview

MOST = 15
"""Causes and places that are shown."""
WIDEST = 400
"""Cells of a line in a file."""


def write_survey_terminal(report: SurveyOverview, stream: TextIO) -> None:
    """Writes the tables; all units come first, what they have in common last."""
    console = report_console(stream)
    if not console.is_terminal:
        console.width = WIDEST  # many columns: in a file, no line has to be short
    print_page(_table(UNIT_COLUMNS, map(unit_cells, report.rows)), console)
    if report.places:
        console.print()
        print_page(_table(PLACE_COLUMNS, map(place_cells, report.places[:MOST])), console)
    if report.causes:
        console.print()
        print_page(_table(CAUSE_COLUMNS, map(cause_cells, report.causes[:MOST])), console)
    console.print()
    for count in report.counts:
        console.print(Text(visible(f"{conditions_words(count.conditions, count.torch)}: {counted_share(count)}")))


def write_survey_diff_terminal(found: SurveyComparison, stream: TextIO) -> None:
    """Writes what has changed, regressions first."""
    console = report_console(stream)
    for change in sorted(found.changes, key=lambda one: not one.is_regression):
        for line in change_lines(change):
            console.print(Text(visible(line)))
    console.print(Text(comparison_summary(found)))


def _table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for column in columns:
        table.add_column(column, overflow="fold")
    for row in rows:
        table.add_row(*(Text(visible(cell)) for cell in row))
    return table
