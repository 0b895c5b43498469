"""The HTML report of ``explain``: one file that needs nothing else, for any browser, with or without scripts.

What the program is made of may be hostile: text reaches the page escaped or as JSON, the scripts build the page from
text nodes, and the page's own policy lets run no script but the one whose digest it names.
"""

from __future__ import annotations

from importlib import resources
from typing import TextIO

from breakscan.model.words import sentence
from breakscan.report.explain.html.island import island
from breakscan.report.explain.html.without_scripts import static_report
from breakscan.report.explain.report import ExplainReport
from breakscan.report.explain.repro_words import repro_sentence
from breakscan.report.html_page import escaped, page_style, scripted_page
from breakscan.report.printable import visible

_SCRIPTS = (
    "model",
    "code",
    "details",
    "overview",
    "breaks",
    "frames",
    "eager_calls",
    "recompiles",
    "source",
    "timeline_rows",
    "timeline",
    "graphs",
    "guards",
    "flame",
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
            below=f'{_reproduction(report)}\n<div id="calls"></div>',
            static=static_report(explanation),
            data=data,
            style=page_style(),
            scripts=(_part(f"script/{name}.js") for name in _SCRIPTS),
        )
    )


def _reproduction(report: ExplainReport) -> str:
    """The program that ``--repro`` wrote, in a paragraph."""
    if report.reproduction is None:
        return ""
    return f'<p id="reproduction">Reproduction: {escaped(sentence(visible(repro_sentence(report.reproduction))))}</p>'


def _part(name: str) -> str:
    return (resources.files(__package__) / name).read_text(encoding="ascii")
