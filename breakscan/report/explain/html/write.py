"""The HTML report of ``explain``: one file that needs nothing else, for any browser, with or without scripts.

What the program is made of may be hostile: text reaches the page escaped or as JSON, the scripts build the page from
text nodes, and the page's own policy lets run no script but the one whose digest it names."""

from __future__ import annotations

from importlib import resources
from typing import TextIO

from breakscan.explanation.explanation import Explanation
from breakscan.explanation.problems import Section, sections_of
from breakscan.model.problem import Problem
from breakscan.model.words import sentences
from breakscan.report.explain.html.island import island
from breakscan.report.explain.report import ExplainReport
from breakscan.report.html_page import escaped, page_style, scripted_page

MOST_ROWS = 300
"""Of each table: enough for a reader without scripts, and soon parsed for the others."""


def static_report(explanation: Explanation) -> str:
    """The tables, as HTML in ASCII."""
    notices = "".join(f"<li>{escaped(notice.text)}" for notice in explanation.notices)
    tables = [_table(section) for section in sections_of(explanation.problems)]
    return "\n".join([*tables, f"<h2>Notes</h2><ul>{notices}</ul>" if notices else ""])


def _table(section: Section) -> str:
    problems = section.problems
    rows = map(_row, problems[:MOST_ROWS])
    body = "".join(f"<tr>{''.join(f'<td>{escaped(cell)}' for cell in row)}" for row in rows)
    rest = f"<p>{len(problems) - MOST_ROWS} more are shown with scripts only.</p>" if len(problems) > MOST_ROWS else ""
    return f"<h2>{section.heading}</h2><table><tr><th>Where<th>What<th>Why<th>Instead{body}</table>{rest}"


def _row(problem: Problem) -> tuple[str, ...]:
    inside = f" in {problem.function}" if problem.function else ""
    return (
        f"{problem.site.path}:{problem.site.line}:{problem.site.column}{inside}",
        " ".join(filter(None, [problem.what, problem.times, problem.rule_words])),
        sentences(problem.why, *problem.consequences),
        problem.advice or "",
    )


_SCRIPTS = (
    "model",
    "code",
    "details",
    "overview",
    "breaks",
    "frames",
    "around",
    "recompiles",
    "source",
    "graphs",
    "guards",
    "compiling",
    "exports",
    "ranks",
    "app",
)
"""In the order in which they run: names defined at the top of one are known to those after it."""


def write_html(report: ExplainReport, stream: TextIO) -> None:
    """Writes the report, ASCII only, with line ends as the stream has them."""
    explanation = report.explanation
    data = island(explanation, report.files)
    stream.write(
        scripted_page(
            title=data["title"],
            outcome=data["outcome"],
            headline=data["headline"],
            below='\n<div id="calls"></div>',
            static=static_report(explanation),
            data=data,
            style=page_style(),
            scripts=(_part(f"script/{name}.js") for name in _SCRIPTS),
        )
    )


def _part(name: str) -> str:
    return (resources.files(__package__) / name).read_text(encoding="ascii")
