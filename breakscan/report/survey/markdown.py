"""A survey as Markdown, for a job summary or an issue."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TextIO

from breakscan.model.words import counted
from breakscan.report.shared.markdown_text import code, prose, row, table_head
from breakscan.report.survey.change_words import GROUP_COLUMNS, comparison_summary, group_cells, versions_words
from breakscan.report.survey.words import (
    CAUSE_COLUMNS,
    CONDITION_COLUMNS,
    ENDING_COLUMNS,
    FILE_COLUMNS,
    PLACE_COLUMNS,
    UNIT_COLUMNS,
    cause_cells,
    condition_cells,
    ending_cells,
    file_cells,
    place_cells,
    unit_cells,
)
from breakscan.survey.comparison import SurveyComparison, change_groups
from breakscan.survey.overview import SurveyOverview

MOST = 25
"""Rows of each table but that of units: a job summary holds 1 MB."""


def write_survey_markdown(report: SurveyOverview, stream: TextIO) -> None:
    """Writes what the units have in common, then a table of them."""
    stream.write("# breakscan survey\n\n")
    _table(CONDITION_COLUMNS, map(condition_cells, report.shares), stream)
    for title, columns, rows in (
        ("Causes", CAUSE_COLUMNS, [cause_cells(one) for one in report.causes]),
        ("Files", FILE_COLUMNS, [file_cells(one) for one in report.files]),
        ("Places", PLACE_COLUMNS, [place_cells(one) for one in report.places]),
        ("Why units did not run", ENDING_COLUMNS, [ending_cells(one) for one in report.endings]),
    ):
        if rows:
            stream.write(f"\n## {title}\n\n")
            _table(columns, rows[:MOST], stream)
            if len(rows) > MOST:
                stream.write(f"\n{counted(len(rows) - MOST, 'more row')}.\n")
    stream.write("\n## Units\n\n")
    _table(UNIT_COLUMNS, map(unit_cells, report.rows), stream)


def write_survey_diff_markdown(found: SurveyComparison, stream: TextIO) -> None:
    """Writes what has changed, by cause, what is worse first."""
    words = ", ".join([comparison_summary(found), *versions_words(found)])
    stream.write(f"# breakscan survey diff\n\n{prose(words)}\n")
    groups = change_groups(found.changes)
    if groups:
        stream.write("\n")
        _table(GROUP_COLUMNS, map(group_cells, groups), stream)


def _table(columns: Sequence[str], rows: Iterable[Sequence[str]], stream: TextIO) -> None:
    stream.write(table_head(*columns))
    for first, *others in rows:
        stream.write(row(code(first), *map(prose, others)))
