"""A survey as HTML that needs nothing else: a page of all units with filters, and a page of each unit.

What programs say may be hostile: it reaches the pages escaped or as JSON, the scripts build the page from text nodes,
and the page's own policy allows no script but the one whose digest it names.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, TextIO

from breakscan.model.words import bytes_in_words, counted, duration, listed, sentence, sentences, short_path
from breakscan.report.html_page import (
    base_style,
    escaped,
    escaped_lines,
    html_table,
    page_part,
    page_style,
    plain_page,
    scripted_page,
)
from breakscan.report.markdown import clipped
from breakscan.report.survey import (
    KIND_WORDS,
    cause_name,
    common_tables,
    conditions_table,
    conditions_words,
    survey_headline,
    units_table,
)
from breakscan.survey.facts import FIX_OUTCOMES
from breakscan.survey.overview import SurveyOverview
from breakscan.survey.unit_row import UnitReport
from breakscan.survey.units import SurveyStage

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
            report.pages.get(row.key),
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


MOST = 500
"""Rows of a table."""
_STYLE = """
header { padding-top: 18px; }
header p { color: var(--muted); }
h1 { font-size: 19px; }
h2 { font-size: 14px; margin: 26px 0 8px; }
main { padding-bottom: 80px; }
table { width: 100%; border-collapse: collapse; }
th { text-align: left; font-weight: 500; font-size: 12px; color: var(--muted); }
th, td { padding: 5px 12px 5px 0; vertical-align: top; border-bottom: 1px solid var(--line); overflow-wrap: anywhere; }
pre { margin: 8px 0; padding: 8px; overflow-x: auto; font: 12px/1.5 var(--mono); background: var(--panel); }
summary { cursor: pointer; }
"""
Entry = Mapping[str, Any]


def write_unit_page(report: UnitReport, stream: TextIO) -> None:
    """Writes the page, ASCII only."""
    row = report.row
    words = conditions_words(row.conditions, row.torch)
    header = f"""<header><p><a href="../index.html">All units</a></p>
<h1>{escaped(row.name)}</h1><p>{escaped(f"{words}: {row.status}")}</p></header>
<main>
"""
    parts = (part + "\n" for part in _parts(report))
    stream.write(plain_page(f"{row.name}: breakscan survey", base_style() + _STYLE, [header, *parts, "</main>\n"]))


def _parts(report: UnitReport) -> Iterator[str]:
    data = report.reports
    if explained := data.get(SurveyStage.EXPLAIN.value):
        yield from _explained(explained)
    if checked := data.get(SurveyStage.CHECK.value):
        rows = [(_place(one["site"], one["function"]), one["rule"], one["message"]) for one in checked["findings"]]
        yield from _section("What check finds", ("Where", "Rule", "What"), rows)
    if fixed := data.get(SurveyStage.FIX.value):
        yield from _fixed(fixed)
    if verified := data.get(SurveyStage.VERIFY.value):
        proofs = [(one["label"], one["verdict"], _ratio(one), one.get("reason") or "") for one in verified["proofs"]]
        yield from _section("What verify proved", ("Change", "Verdict", "Speed", "Why"), proofs)
    if benched := data.get(SurveyStage.BENCH.value):
        ways = [(one["way"], _ratio(one), one["problem"] or "") for one in benched["ways"]]
        yield from _section("Ways to compile", ("Way", "Beside eager", "Problem"), ways)
    yield from _stages(report)
    command = ["breakscan", "explain", "--format", "html", "--output", "report.html", *report.surveyed.unit.program()]
    yield "<h2>With time line, graphs, guards and source</h2>"
    yield f"<p>This command runs the program again and writes all of it:</p>{_pre(shlex.join(command))}"


def _explained(report: Entry) -> Iterator[str]:
    summary = report["summary"]
    parts = [
        counted(summary["graphs"], "graph"),
        counted(summary["break_sites"], "break"),
        counted(summary["recompiles"], "recompile"),
        f"{duration(summary['compile_seconds'])} of compiling",
    ]
    yield f"<p>{escaped(sentence(', '.join(parts)))}</p>"
    yield from _section(
        "Problems",
        ("Where", "What", "Why", "Instead", "Costs"),
        [
            (
                _place(one["site"], listed(one["functions"], "function"), one["code"]),
                ", ".join(filter(None, (one["what"], one["rule"] or one["gb_id"]))),
                sentences(one["why"], *one["consequences"]),
                " ".join([remedy["text"] for remedy in one["remedies"][:1]] or one["hints"][:1]),
                duration(one["cost"]) if one["cost"] else "",
            )
            for one in report["problems"]
            if one["cause"] is None
        ],
    )
    if report["notices"]:
        yield f"<h2>Notes</h2><ul>{''.join(f'<li>{escaped(one)}' for one in report['notices'])}</ul>"


def _fixed(report: Entry) -> Iterator[str]:
    rows = [
        (_place(one["finding"]["site"], one["finding"]["function"]), name, one["finding"]["rule"], one["rewrite"])
        for file in report["files"]
        for name in FIX_OUTCOMES[:2]
        for one in file[name]
    ]
    yield from _section("What fix offers", ("Where", "As", "Rule", "Rewrite"), rows)
    for file in report["files"]:
        if file["diff"]:
            yield f"<details><summary>{escaped(file['path'])}</summary>{_pre(file['diff'])}</details>"


def _stages(report: UnitReport) -> Iterator[str]:
    results = report.surveyed.results
    stages = [stage.value for stage in SurveyStage if stage.value in results]
    rows = []
    for name in stages:
        one = results[name]
        peak = "" if one.peak is None else bytes_in_words(one.peak)
        rows.append((one.stage, one.status, duration(one.seconds), peak, one.host))
    yield from _section("How it ran", ("Stage", "Status", "Took", "Memory", "On"), rows)
    for name in stages:
        if results[name].said:
            yield f"<h2>The last that {escaped(name)} said</h2>{_pre(results[name].said)}"


def _section(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterable[str]:
    if not rows:
        return
    rest = f"<p>{counted(len(rows) - MOST, 'more row')}.</p>" if len(rows) > MOST else ""
    yield f"<h2>{title}</h2>{html_table(columns, rows[:MOST], 'plain')}{rest}"


def _place(site: Entry | None, function: str | None, code: str | None = None) -> str:
    at = f"{short_path(site['path'])}:{site['line']}" if site else ""
    return ": ".join(filter(None, (" in ".join(filter(None, (at, function))), code)))


def _ratio(one: Entry) -> str:
    return f"{one['ratio']['median']:.2f}\u00d7" if one["ratio"] else ""


def _pre(text: str) -> str:
    return f"<pre>{escaped_lines(text)}</pre>"
