"""The page of one unit of a survey, of the JSON that its stages wrote: what broke, why, what it cost, and what to write
instead.  It has no scripts.  Text of the program reaches it escaped.

The store has no recording, of which the page of ``explain`` is made; this one names the command that writes that.
"""

from __future__ import annotations

import html
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, TextIO

from breakscan.model.findings import Verdict
from breakscan.model.words import bytes_in_words, counted, duration, sentence, sentences, short_path
from breakscan.report.shared.html_page import base_style, escaped, plain_page
from breakscan.report.shared.printable import CHARACTERS
from breakscan.report.survey.words import conditions_words
from breakscan.survey.facts import FIX_OUTCOMES, cost_in_all
from breakscan.survey.unit_row import UnitReport
from breakscan.survey.units import SurveyStage

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
_KEPT = {code: mark for code, mark in CHARACTERS.items() if code not in (ord("\n"), ord("\t"))}
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
    told = report.reports
    if explained := told.get(SurveyStage.EXPLAIN.value):
        yield from _explained(explained)
    if checked := told.get(SurveyStage.CHECK.value):
        rows = [(_place(one["site"], one["function"]), one["rule"], one["message"]) for one in checked["findings"]]
        yield from _section("What check finds", ("Where", "Rule", "What"), rows)
    if fixed := told.get(SurveyStage.FIX.value):
        yield from _fixed(fixed)
    if verified := told.get(SurveyStage.VERIFY.value):
        proofs = [(one["label"], one["verdict"], _ratio(one), one.get("reason") or "") for one in verified["proofs"]]
        yield from _section("What verify proved", ("Change", "Verdict", "Speed", "Why"), proofs)
    if benched := told.get(SurveyStage.BENCH.value):
        ways = [(one["way"], _ratio(one), one["problem"] or "") for one in benched["ways"]]
        yield from _section("Ways to compile", ("Way", "Beside eager", "Problem"), ways)
    yield from _stages(report)
    command = ["breakscan", "explain", "--format", "html", "--output", "report.html", *report.surveyed.unit.program()]
    yield "<h2>With time line, graphs, guards and source</h2>"
    yield f"<p>This command runs the program again and writes all of it:</p>{_text(shlex.join(command))}"


def _explained(report: Entry) -> Iterator[str]:
    summary = report["summary"]
    parts = [
        counted(summary["graphs"], "graph"),
        counted(summary["break_sites"], "break"),
        counted(summary["recompiles"], "recompile"),
        f"{duration(summary['compile_seconds'])} of compiling",
    ]
    yield f"<p>{escaped(sentence(', '.join(parts)))}</p>"
    breaks = sorted(report["breaks"], key=lambda one: -(cost_in_all(one["price"]) or 0))
    yield from _section(
        "Breaks",
        ("Where", "What", "Why", "Instead", "Costs"),
        [
            (
                _place(one["site"], one["function"], one["code"]),
                ", ".join(filter(None, (Verdict(one["verdict"]).words, one["rule"], one["gb_id"]))),
                one["reason"],
                one["advice"] or next(iter(one["hints"]), ""),
                _cost(one),
            )
            for one in breaks
        ],
    )
    yield from _section(
        "Functions that are not compiled",
        ("Where", "What", "Why", "Instead", "Costs"),
        [
            (
                _place(one["failed_at"] or one["site"], one["function"], one["failed_code"] or one["code"]),
                ", ".join(filter(None, (one["status"], one["rule"], one["gb_id"]))),
                one["reason"],
                one["advice"] or "",
                _cost(one),
            )
            for one in report["frames"]
        ],
    )
    yield from _section(
        "Recompiles",
        ("Where", "Rule", "Why", "Instead", "Compiling again"),
        [
            (
                _place(one["site"], one["function"]),
                one["rule"] or "",
                sentences(one["guard"], f"was {one['old']}, is {one['new']}" if one["old"] and one["new"] else None),
                one["advice"] or "",
                duration(one["seconds"]),
            )
            for one in report["recompiles"]
        ],
    )
    if report["notices"]:
        yield f"<h2>Notes</h2><ul>{''.join(f'<li>{escaped(one)}' for one in report['notices'])}</ul>"


def _fixed(report: Entry) -> Iterator[str]:
    rows = [
        (_place(one["finding"]["site"], one["finding"]["function"]), name, one["finding"]["rule"], one["rewrite"])
        for file in report["files"]
        for name in FIX_OUTCOMES[:4]
        for one in file[name]
    ]
    yield from _section("What fix offers", ("Where", "As", "Rule", "Rewrite"), rows)
    for file in report["files"]:
        if file["diff"]:
            yield f"<details><summary>{escaped(file['path'])}</summary>{_text(file['diff'])}</details>"


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
            yield f"<h2>The last that {escaped(name)} said</h2>{_text(results[name].said)}"


def _section(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterable[str]:
    if not rows:
        return
    head = "".join(f"<th>{name}" for name in columns)
    body = "".join(f"<tr>{''.join(f'<td>{escaped(cell)}' for cell in row)}" for row in rows[:MOST])
    rest = f"<p>{counted(len(rows) - MOST, 'more row')}.</p>" if len(rows) > MOST else ""
    yield f"<h2>{title}</h2><table><tr>{head}{body}</table>{rest}"


def _place(site: Entry | None, function: str | None, code: str | None = None) -> str:
    at = f"{short_path(site['path'])}:{site['line']}" if site else ""
    return ": ".join(filter(None, (" in ".join(filter(None, (at, function))), code)))


def _cost(one: Entry) -> str:
    seconds = cost_in_all(one["price"])
    return duration(seconds) if seconds else ""


def _ratio(one: Entry) -> str:
    return f"{one['ratio']['median']:.2f}\u00d7" if one["ratio"] else ""


def _text(text: str) -> str:
    """Text with its lines."""
    return f"<pre>{html.escape(text.translate(_KEPT)).encode('ascii', 'xmlcharrefreplace').decode()}</pre>"
