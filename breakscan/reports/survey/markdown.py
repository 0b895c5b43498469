"""A survey as Markdown, for a job summary or an issue."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TextIO

from breakscan.reports.shared.markdown_text import code, prose, row, table_head
from breakscan.reports.survey.words import (
    CAUSE_COLUMNS,
    PLACE_COLUMNS,
    UNIT_COLUMNS,
    cause_cells,
    conditions_words,
    counted_share,
    place_cells,
    unit_cells,
)
from breakscan.survey.overview import SurveyOverview


def write_survey_markdown(report: SurveyOverview, stream: TextIO) -> None:
    """Writes what the units have in common, then a table of them."""
    stream.write("# breakscan survey\n\n")
    for count in report.counts:
        words = f"{conditions_words(count.conditions, count.torch)}: {counted_share(count)}"
        stream.write(f"- {prose(words)}\n")
    if report.causes:
        stream.write("\n## Causes\n\n")
        _table(CAUSE_COLUMNS, map(cause_cells, report.causes), stream)
    if report.places:
        stream.write("\n## Places\n\n")
        _table(PLACE_COLUMNS, map(place_cells, report.places), stream)
    stream.write("\n## Units\n\n")
    _table(UNIT_COLUMNS, map(unit_cells, report.rows), stream)


def _table(columns: Sequence[str], rows: Iterable[Sequence[str]], stream: TextIO) -> None:
    stream.write(table_head(*columns))
    for first, *others in rows:
        stream.write(row(code(first), *map(prose, others)))
