"""The part of an HTML report that is there without scripts: breaks, what is not compiled, recompiles, notes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from breakscan.findings import Site
from breakscan.reports.explain.advice_words import recompile_advice
from breakscan.reports.explain.grouping import by_cause
from breakscan.reports.explain.words import frame_status, recompile_sentence, verdict_sentence
from breakscan.reports.shared.html_page import escaped
from breakscan.reports.shared.site_words import VERDICT_WORDS, rule_words
from breakscan.reports.shared.wording import sentence
from breakscan.runtime.explain.explanation import BreakSite, Explanation, Recompile, UncompiledFrame

MOST_ROWS = 300
"""Of each table: enough for a reader without scripts, and soon parsed for the others."""


def static_report(explanation: Explanation) -> str:
    """The tables, as HTML in ASCII."""
    causes = by_cause(explanation.recompiles)
    told = [frame for frame in explanation.frames if frame.break_site is None]
    notices = "".join(f"<li>{escaped(notice)}" for notice in explanation.notices)
    return "\n".join(
        (
            _table("Graph breaks", [_break(site) for site in explanation.breaks[:MOST_ROWS]], len(explanation.breaks)),
            _table("Not compiled", [_frame(frame) for frame in told[:MOST_ROWS]], len(told)),
            _table("Recompiles", [_cause(group) for group in causes[:MOST_ROWS]], len(causes)),
            f"<h2>Notes</h2><ul>{notices}</ul>" if notices else "",
        )
    )


def _table(heading: str, rows: Sequence[Sequence[str]], total: int) -> str:
    if not rows:
        return ""
    body = "".join(f"<tr>{''.join(f'<td>{escaped(cell)}' for cell in row)}" for row in rows)
    rest = f"<p>{total - len(rows)} more are shown with scripts only.</p>" if total > len(rows) else ""
    return f"<h2>{heading}</h2><table><tr><th>Where<th>What<th>Why<th>Instead{body}</table>{rest}"


def _break(site: BreakSite) -> tuple[str, ...]:
    why = _sentences([site.rule.why if site.rule else site.reason, verdict_sentence(site)])
    what = f"{VERDICT_WORDS[site.verdict]} {rule_words(site.rule)}"
    return _where(site.site, site.function), what, why, site.advice or ""


def _frame(frame: UncompiledFrame) -> tuple[str, ...]:
    what = f"{frame_status(frame)} {rule_words(frame.rule)}"
    return _where(frame.site, frame.function), what, _sentences([frame.reason]), frame.advice or ""


def _cause(group: Sequence[Recompile]) -> tuple[str, ...]:
    first = group[0]
    what = f"recompiled {len(group)}× {rule_words(first.rule)}"
    return (
        _where(first.site, first.function),
        what,
        _sentences([recompile_sentence(group)]),
        recompile_advice(first) or "",
    )


def _where(site: Site, function: str | None) -> str:
    return f"{site.path}:{site.line}:{site.column}{f' in {function}' if function else ''}"


def _sentences(said: Iterable[str | None]) -> str:
    return " ".join(sentence(text) for text in said if text)
