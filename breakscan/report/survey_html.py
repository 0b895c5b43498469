"""A survey as one HTML page that needs nothing else, with filters.

What programs say may be hostile: it reaches the page escaped or as JSON, the scripts build the page from text nodes,
and the page's own policy allows no script but the one whose digest it names.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TextIO

from breakscan.report.html_page import (
    html_table,
    page_part,
    page_style,
    scripted_page,
)
from breakscan.report.markdown import clipped
from breakscan.report.survey import (
    KIND_WORDS,
    cause_name,
    common_tables,
    conditions_table,
    survey_headline,
    units_table,
)
from breakscan.survey.overview import SurveyOverview

MOST_ROWS = 300
"""Of each table, for readers without scripts."""
MOST_SAID = 2000
"""Characters of what a unit said last."""
_SCRIPTS = ("survey", "units", "causes")


def write_survey_html(report: SurveyOverview, stream: TextIO) -> None:
    """Writes the page, ASCII only."""
    shares = conditions_table(report)
    stream.write(
        scripted_page(
            title="breakscan survey",
            outcome=f"breakscan survey of {len(report.rows)} units",
            headline=survey_headline(report),
            below=f'<div id="conditions">{html_table(shares.columns, shares.rows)}</div>',
            static="\n".join(_static(report)),
            data=_data(report),
            style=page_style() + page_part("survey/survey.css"),
            scripts=(page_part(f"survey/{name}.js") for name in _SCRIPTS),
        )
    )


def _static(report: SurveyOverview) -> Iterator[str]:
    """The tables, without scripts."""
    causes, files, _, endings = common_tables(report)
    for table in (causes, files, endings, units_table(report)):
        more = len(table.rows) - MOST_ROWS
        rest = f"<p>{more} more are shown with scripts only.</p>" if more > 0 else ""
        yield f"<h2>{table.title}</h2>{html_table(table.columns, table.rows[:MOST_ROWS])}{rest}"


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
    """Data of the scripts; texts that many units have are kept once, and referred to by number."""
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
        ]
        for row in report.rows
    ]
    causes_data = [
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
        "causes": causes_data,
        "files": where,
        "places": [[files(one.path), one.line, one.rule, one.units] for one in report.places],
        "endings": endings,
    }
