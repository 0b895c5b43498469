"""A survey as one HTML page that needs nothing else: all units, with filters, and what they have in common.

What programs say may be hostile: it reaches the page escaped or as JSON, the scripts build the page from text nodes,
and the page's own policy lets run no script but the one whose digest it names.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from importlib import resources
from typing import Any, TextIO

from breakscan.report.shared.html_page import escaped, page_style, scripted_page
from breakscan.report.shared.markdown_text import clipped
from breakscan.report.survey.words import (
    CAUSE_COLUMNS,
    CONDITION_COLUMNS,
    ENDING_COLUMNS,
    FILE_COLUMNS,
    KIND_WORDS,
    UNIT_COLUMNS,
    cause_cells,
    cause_name,
    condition_cells,
    ending_cells,
    file_cells,
    survey_headline,
    unit_cells,
)
from breakscan.survey.overview import SurveyOverview

MOST_ROWS = 300
"""Of each table, for readers without scripts."""
MOST_SAID = 2000
"""Characters of what a unit said last."""
_SCRIPTS = ("survey", "units", "causes")


def write_survey_html(report: SurveyOverview, stream: TextIO) -> None:
    """Writes the page, ASCII only."""
    stream.write(
        scripted_page(
            title="breakscan survey",
            outcome=f"breakscan survey of {len(report.rows)} units",
            headline=survey_headline(report),
            below=f'<div id="conditions">{_table(CONDITION_COLUMNS, map(condition_cells, report.shares))}</div>',
            static="\n".join(_static(report)),
            data=_data(report),
            style=page_style() + _part("survey.css"),
            scripts=(_part(f"script/{name}.js") for name in _SCRIPTS),
        )
    )


def _static(report: SurveyOverview) -> Iterator[str]:
    """The tables, without scripts."""
    for title, columns, rows in (
        ("Causes", CAUSE_COLUMNS, [cause_cells(one) for one in report.causes]),
        ("Files", FILE_COLUMNS, [file_cells(one) for one in report.files]),
        ("Why units did not run", ENDING_COLUMNS, [ending_cells(one) for one in report.endings]),
        ("Units", UNIT_COLUMNS, [unit_cells(one) for one in report.rows]),
    ):
        rest = f"<p>{len(rows) - MOST_ROWS} more are shown with scripts only.</p>" if len(rows) > MOST_ROWS else ""
        yield f"<h2>{title}</h2>{_table(columns, rows[:MOST_ROWS])}{rest}"


def _table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    head = "".join(f"<th>{name}" for name in columns)
    body = "".join(f"<tr>{''.join(f'<td>{escaped(cell)}' for cell in row)}" for row in rows)
    return f'<table class="list"><tr>{head}{body}</table>'


class _Numbers:
    """Gives each text a number, in order."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}

    def __call__(self, text: str) -> int:
        return self._numbers.setdefault(text, len(self._numbers))

    @property
    def texts(self) -> list[str]:
        return list(self._numbers)


def _data(report: SurveyOverview) -> dict[str, Any]:
    """What the scripts show; texts that many units have are kept once, and told by their number."""
    conditions, versions, causes, files, said = (_Numbers() for _ in range(5))
    units = [
        [
            row.name,
            conditions(" ".join(row.conditions)),
            versions(row.torch or "none"),
            row.status,
            *(row.breaks, row.eager, row.recompiles, row.graphs, row.cost),
            None if row.costliest is None else causes(row.costliest),
            list(map(causes, row.causes)),
            list(map(files, row.files)),
            *(row.compile_seconds, row.peak, row.findings, row.seen, row.offered, row.proved, row.speed),
            said(row.said[-MOST_SAID:]),
            said(clipped(row.last_said)),
            report.pages.get(row.key),
        ]
        for row in report.rows
    ]
    told = [
        {
            "name": cause_name(one.cause),
            "number": causes(one.cause.name),
            "of": KIND_WORDS[one.cause.kind],
            "units": one.units,
            "places": one.places,
            "costs_most": one.costs_most,
            "seconds": one.seconds,
        }
        for one in report.causes
    ]
    where = [
        {"number": files(one.path), "units": one.units, "places": one.places, "rules": one.rules}
        for one in report.files
    ]
    endings = [{"said": said(clipped(one.said)), "status": one.status, "units": one.units} for one in report.endings]
    return {
        "units": units,
        "conditions": conditions.texts,
        "versions": versions.texts,
        "causeNames": causes.texts,
        "fileNames": files.texts,
        "said": said.texts,
        "causes": told,
        "files": where,
        "places": [[files(one.path), one.line, one.rule, one.units] for one in report.places],
        "endings": endings,
    }


def _part(name: str) -> str:
    return (resources.files(__package__) / name).read_text(encoding="ascii")
