"""The part of an HTML report that is there without scripts: what stands against exports, breaks, what is not
compiled, calls that ran eager, recompiles, notes."""

from __future__ import annotations

from breakscan.explain.explanation import Explanation
from breakscan.model.words import sentences
from breakscan.report.explain.entries import ReportEntry
from breakscan.report.explain.notice_words import notice_words
from breakscan.report.explain.sections import Section, report_sections
from breakscan.report.html_page import escaped
from breakscan.rulebook.document import rule_words

MOST_ROWS = 300
"""Of each table: enough for a reader without scripts, and soon parsed for the others."""


def static_report(explanation: Explanation) -> str:
    """The tables, as HTML in ASCII."""
    notices = "".join(f"<li>{escaped(notice_words(notice))}" for notice in explanation.notices)
    tables = [_table(section) for section in report_sections(explanation)]
    return "\n".join([*tables, f"<h2>Notes</h2><ul>{notices}</ul>" if notices else ""])


def _table(section: Section) -> str:
    entries = section.entries
    rows = map(_row, entries[:MOST_ROWS])
    body = "".join(f"<tr>{''.join(f'<td>{escaped(cell)}' for cell in row)}" for row in rows)
    rest = f"<p>{len(entries) - MOST_ROWS} more are shown with scripts only.</p>" if len(entries) > MOST_ROWS else ""
    return f"<h2>{section.heading}</h2><table><tr><th>Where<th>What<th>Why<th>Instead{body}</table>{rest}"


def _row(entry: ReportEntry) -> tuple[str, ...]:
    inside = f" in {entry.function}" if entry.function else ""
    return (
        f"{entry.site.path}:{entry.site.line}:{entry.site.column}{inside}",
        " ".join(filter(None, [entry.label, entry.times, rule_words(entry.rule)])),
        sentences(entry.why, *entry.consequences),
        entry.advice or "",
    )
