"""A survey as tables: what breaks under which conditions, why, where, and each unit."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TextIO

from rich.table import Table
from rich.text import Text

from breakscan.report.shared.console import print_page, report_console
from breakscan.report.shared.printable import visible
from breakscan.report.survey.change_words import comparison_summary, group_lines, versions_words
from breakscan.report.survey.words import (
    CAUSE_COLUMNS,
    ENDING_COLUMNS,
    FILE_COLUMNS,
    PLACE_COLUMNS,
    UNIT_COLUMNS,
    cause_cells,
    conditions_words,
    counted_share,
    ending_cells,
    file_cells,
    place_cells,
    unit_cells,
)
from breakscan.survey.comparison import SurveyComparison, change_groups
from breakscan.survey.overview import SurveyOverview

MOST = 15
"""Causes, places, files and reasons that are shown."""
WIDEST = 400
"""Cells of a line in a file."""


def write_survey_terminal(report: SurveyOverview, stream: TextIO) -> None:
    """Writes the tables; all units come first, what they have in common last."""
    console = report_console(stream)
    if not console.is_terminal:
        console.width = WIDEST  # many columns: in a file, no line has to be short
    print_page(_table(UNIT_COLUMNS, map(unit_cells, report.rows)), console)
    for columns, rows in (
        (ENDING_COLUMNS, [ending_cells(one) for one in report.endings[:MOST]]),
        (PLACE_COLUMNS, [place_cells(one) for one in report.places[:MOST]]),
        (FILE_COLUMNS, [file_cells(one) for one in report.files[:MOST]]),
        (CAUSE_COLUMNS, [cause_cells(one) for one in report.causes[:MOST]]),
    ):
        if rows:
            console.print()
            print_page(_table(columns, rows), console)
    console.print()
    for count in report.counts:
        console.print(Text(visible(f"{conditions_words(count.conditions, count.torch)}: {counted_share(count)}")))


def write_survey_diff_terminal(found: SurveyComparison, stream: TextIO) -> None:
    """Writes what has changed, by cause, what is worse first."""
    console = report_console(stream)
    for group in change_groups(found.changes):
        for line in group_lines(group):
            console.print(Text(visible(line)))
    console.print(Text(visible(", ".join([comparison_summary(found), *versions_words(found)]))))


def _table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for column in columns:
        table.add_column(column, overflow="fold")
    for row in rows:
        table.add_row(*(Text(visible(cell)) for cell in row))
    return table
