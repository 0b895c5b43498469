"""The part of an HTML report that is there without scripts: breaks, what is not compiled, calls that ran eager,
recompiles, notes."""

from __future__ import annotations

from collections.abc import Sequence

from breakscan.reports.explain.entries import (
    ReportEntry,
    break_entries,
    cause_entries,
    eager_call_entries,
    frame_entries,
)
from breakscan.reports.explain.notice_words import notice_words
from breakscan.reports.shared.html_page import escaped
from breakscan.reports.shared.site_words import rule_words
from breakscan.reports.shared.wording import sentences
from breakscan.runtime.explain.explanation import Explanation

MOST_ROWS = 300
"""Of each table: enough for a reader without scripts, and soon parsed for the others."""


def static_report(explanation: Explanation) -> str:
    """The tables, as HTML in ASCII."""
    notices = "".join(f"<li>{escaped(notice_words(notice))}" for notice in explanation.notices)
    return "\n".join(
        (
            _table("Graph breaks", break_entries(explanation)),
            _table("Not compiled", frame_entries(explanation)),
            _table("Calls that ran eager", eager_call_entries(explanation)),
            _table("Recompiles", cause_entries(explanation)),
            f"<h2>Notes</h2><ul>{notices}</ul>" if notices else "",
        )
    )


def _table(heading: str, entries: Sequence[ReportEntry]) -> str:
    if not entries:
        return ""
    rows = map(_row, entries[:MOST_ROWS])
    body = "".join(f"<tr>{''.join(f'<td>{escaped(cell)}' for cell in row)}" for row in rows)
    rest = f"<p>{len(entries) - MOST_ROWS} more are shown with scripts only.</p>" if len(entries) > MOST_ROWS else ""
    return f"<h2>{heading}</h2><table><tr><th>Where<th>What<th>Why<th>Instead{body}</table>{rest}"


def _row(entry: ReportEntry) -> tuple[str, ...]:
    inside = f" in {entry.function}" if entry.function else ""
    return (
        f"{entry.site.path}:{entry.site.line}:{entry.site.column}{inside}",
        " ".join(filter(None, [entry.label, entry.times, rule_words(entry.rule)])),
        sentences(entry.why, *entry.consequences),
        entry.advice or "",
    )
