"""The HTML report of ``explain``: one file that needs nothing else, for any browser, with or without scripts.

What the program is made of may be hostile: text reaches the page escaped or as JSON, the scripts build the page from
text nodes, and the page's own policy lets run no script but the one whose digest it names."""

from __future__ import annotations

import base64
import hashlib
import html
import json
from importlib import resources
from string import Template
from typing import Any, TextIO

from breakscan.explanation.explanation import Explanation
from breakscan.explanation.problems import Section, sections_of
from breakscan.model.problem import Problem
from breakscan.model.words import sentences
from breakscan.report.explain.html.island import island
from breakscan.report.explain.report import ExplainReport
from breakscan.report.printable import visible

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
    "dom",
    "words",
    "table",
    "theme",
    "tabs",
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
    data = island(report.explanation, report.files)
    style, script = _part("style.css"), "\n".join(_part(f"script/{name}.js") for name in _SCRIPTS)
    policy = f"default-src 'none'; style-src {_digest(style)}; script-src {_digest(script)}"
    page = Template(_part("page.html")).substitute(
        policy=f"{policy}; base-uri 'none'; form-action 'none'",
        title=escaped(data["title"]),
        style=style,
        script=script,
        outcome=escaped(data["outcome"]),
        headline=escaped(data["headline"]),
        static=static_report(report.explanation),
        data=_json_for_html(data),
    )
    stream.write(page)


def escaped(text: str) -> str:
    """Text as HTML in ASCII, also for attributes: one line, without characters that hide or reorder text."""
    return html.escape(visible(text)).encode("ascii", "xmlcharrefreplace").decode()


def _json_for_html(data: dict[str, Any]) -> str:
    """Returns JSON that cannot end the script element around it."""
    text = json.dumps(data, separators=(",", ":"), ensure_ascii=True, allow_nan=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _part(name: str) -> str:
    return (resources.files(__package__) / name).read_text(encoding="ascii")


def _digest(text: str) -> str:
    """The name of an inline script or style sheet with this text in a content security policy."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
