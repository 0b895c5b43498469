"""The report of ``explain`` as a comment on a pull request, or the summary of a job."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TextIO

from breakscan.findings import Origin, Site, Verdict
from breakscan.reports.explain.advice_words import recompile_advice
from breakscan.reports.explain.grouping import by_cause, frames_on_their_own, users_line
from breakscan.reports.explain.price_words import ceiling_sentence, dearest_first
from breakscan.reports.explain.rank_words import rank_sentences
from breakscan.reports.explain.report import ExplainReport
from breakscan.reports.explain.words import (
    frame_status,
    headline,
    outcome_line,
    part_words,
    recompile_sentence,
    useful_hints,
    verdict_sentence,
    why_nothing_compiled,
)
from breakscan.reports.shared.durations import duration, seconds_in_words
from breakscan.reports.shared.markdown_text import code, paragraph, prose, row, table_head
from breakscan.reports.shared.printable import printable
from breakscan.reports.shared.site_words import VERDICT_WORDS, short_path
from breakscan.reports.shared.wording import counted
from breakscan.rulebook.document import Rule
from breakscan.runtime.explain.compiled import Price
from breakscan.runtime.explain.explanation import BreakSite, Explanation, Recompile, UncompiledFrame
from breakscan.runtime.explain.ranks import alike

MARK = "<!-- breakscan explain -->"
"""The first line: by it, a job finds the comment that it wrote before."""
LIMIT = 65_000
"""Characters: GitHub takes 65,536 in a comment."""

_CUT = (
    "**Cut here:** a comment on GitHub holds 65,536 characters. `breakscan explain --format html` or `--format json` "
    "shows everything.\n"
)
_MOST_COMPILES = 20
_MOST_GRAPHS = 50
_AS_ABOVE = "as above"


@dataclass(frozen=True, slots=True)
class _Section:
    """A table with the text before and after it; ``rows`` are lines of Markdown."""

    start: str
    rows: Sequence[str]
    end: str = ""


def write_explain_markdown(report: ExplainReport, stream: TextIO) -> None:
    """Writes GitHub-flavoured Markdown of at most :data:`LIMIT` characters: what matters most comes first, and a last
    line says where it is cut."""
    explanation = printable(report.explanation)
    head = headline(explanation) if explanation.graphs else why_nothing_compiled(explanation)
    parts = [f"{MARK}\n### breakscan: {prose(head)}\n", paragraph(outcome_line(explanation)) + "\n"]
    if ceiling := ceiling_sentence(explanation):
        parts.append(paragraph(ceiling) + "\n")
    room = LIMIT - len(_CUT) - sum(len(part) + 1 for part in parts)
    for section in _sections(explanation):
        room -= len(section.start) + len(section.end) + 1
        kept = []
        for line in section.rows:
            room -= len(line)
            if room < 0:
                break
            kept.append(line)
        if kept:
            parts.append(section.start + "".join(kept) + section.end)
        if room < 0:
            parts.append(_CUT)
            break
    stream.write("\n".join(parts))


def _sections(explanation: Explanation) -> Iterator[_Section]:
    said = _Said()
    titles = ("graph break", "where", "why", "instead", "each pass")
    breaks = sorted(explanation.breaks, key=dearest_first)
    mine = [site for site in breaks if site.origin is Origin.USER]
    others = [site for site in breaks if site.origin is not Origin.USER]
    yield _Section(table_head(*titles), [_break(site, said) for site in mine])
    recompiled = [_recompiles(group, said) for group in by_cause(explanation.recompiles)]
    yield _Section(table_head("recompiled", "what changed", "where", "instead"), recompiled)
    frames = [_frame(frame, said) for frame in frames_on_their_own(explanation)]
    yield _Section(table_head("not compiled", "where", "why", "instead"), frames)
    if explanation.ranks:
        yield _Section("", [f"- {paragraph(sentence)}\n" for sentence in rank_sentences(explanation.ranks)])
        yield _Section(
            table_head("the ranks differ in", "what each did"),
            [
                row(prose(d.what), "<br>".join(f"{ranks}: {prose(what)}" for ranks, what in alike(d.by_rank)))
                for d in explanation.ranks.differences
            ],
        )
    yield _Section("", [f"- **Note:** {prose(notice)}.\n" for notice in explanation.notices])
    yield _folded(
        counted(len(others), "break in library code", "breaks in library code"),
        titles,
        [_break(site, said) for site in others],
    )
    yield _folded(
        counted(len(explanation.cudagraph_skips), "reason against CUDA graphs", "reasons against CUDA graphs"),
        ("", "why", "where"),
        [row(_times(skip.count), prose(skip.reason), _place(skip.site)) for skip in explanation.cudagraph_skips],
    )
    yield _folded(
        counted(len(explanation.specialisations), "dynamic size became a constant", "dynamic sizes became constants"),
        ("size", "became", "where", "why"),
        [
            row(code(", ".join(size.sources)), code(size.value), _place(size.site), prose(size.reason))
            for size in explanation.specialisations
        ],
    )
    yield from _costs(explanation)


def _costs(explanation: Explanation) -> Iterator[_Section]:
    slowest = sorted(explanation.compiles, key=lambda c: -c.seconds - c.backward_seconds)[:_MOST_COMPILES]
    compilations = counted(len(explanation.compiles), "compilation")
    longest = f", the {len(slowest)} longest" if len(slowest) < len(explanation.compiles) else ""
    yield _folded(
        f"Compile time: {seconds_in_words(explanation.compile_seconds)} in {compilations}{longest}",
        ("function", "compile id", "forward", "backward", "guards"),
        [
            row(
                code(part_words(frame)),
                code(frame.compile_id),
                duration(frame.seconds),
                duration(frame.backward_seconds) if frame.backward_seconds else "",
                "" if frame.guard_count is None else str(frame.guard_count),
            )
            for frame in slowest
        ],
    )
    graphs = explanation.graphs[:_MOST_GRAPHS]
    yield _folded(
        counted(len(explanation.graphs), "graph")
        + (f", the first {_MOST_GRAPHS}" if len(graphs) < len(explanation.graphs) else ""),
        ("graph", "function", "operations", "runs", "each run", "ended by"),
        [
            row(
                str(graph.number),
                code(graph.function) if graph.function else "",
                str(graph.ops),
                "" if graph.runs is None else str(graph.runs),
                duration(graph.seconds / graph.runs) if graph.runs and graph.seconds is not None else "",
                _place(graph.ended_by),
            )
            for graph in graphs
        ],
    )


class _Said:
    """What a rule says, once: its reason is the same at each of its sites, and so is its advice at most of them."""

    def __init__(self) -> None:
        self._explained: set[str] = set()
        self._advised: dict[str, str] = {}

    def why(self, rule: Rule | None, reason: str) -> str:
        if rule is None:
            return prose(reason)
        name = f"{rule.id} {prose(rule.name)}"
        if rule.id in self._explained:
            return name
        self._explained.add(rule.id)
        return f"{name}: {prose(rule.why)}"

    def instead(self, rule: Rule | None, advice: str | None) -> str:
        if not advice:
            return ""
        if rule and self._advised.get(rule.id) == advice:
            return _AS_ABOVE
        if rule:
            self._advised[rule.id] = advice
        return prose(advice)


def _break(site: BreakSite, said: _Said) -> str:
    word = VERDICT_WORDS[site.verdict]
    why = said.why(site.rule, site.reason)
    # The word says so already, except for the reason why a whole function runs eager.
    if site.verdict is Verdict.EAGER and (sentence := verdict_sentence(site)):
        why += f"<br>{prose(sentence)}"
    where = _place(site.site, site.function)
    users = users_line(site.stack) if site.origin is not Origin.USER else None
    if users:
        where += f"<br>from {code(f'{short_path(users.path)}:{users.line}')}"
    todo = said.instead(site.rule, site.advice)
    if not todo and site.rule is None and site.origin is not Origin.FRAMEWORK:
        todo = "<br>".join(map(prose, useful_hints(site.hints)[:1]))
    return row(f"{word} {_times(site.count)}".strip(), where, why, todo, _price(site.price))


def _recompiles(group: Sequence[Recompile], said: _Said) -> str:
    first = group[0]
    functions = dict.fromkeys(r.function or "a function" for r in group)
    where = _place(first.site)
    if first.trigger:
        where += f"<br>from {code(f'{short_path(first.trigger.path)}:{first.trigger.line}')}"
    why = prose(recompile_sentence(group))
    if first.rule:
        why += f" ({first.rule.id} {prose(first.rule.name)})"
    return row(f"{len(group)}× {_listed(functions)}", why, where, said.instead(first.rule, recompile_advice(first)))


def _frame(frame: UncompiledFrame, said: _Said) -> str:
    what = f"{code(frame.function)} {frame_status(frame)}"
    why = prose(frame.reason)
    if frame.rule:
        why += f" ({frame.rule.id} {prose(frame.rule.name)})"
    return row(what, _place(frame.site), why, said.instead(frame.rule, frame.advice))


def _folded(title: str, titles: Sequence[str], rows: Sequence[str]) -> _Section:
    """A table that opens on a click.  ``title`` holds no foreign text."""
    start = f"<details>\n<summary>{title}</summary>\n\n{table_head(*titles)}"
    return _Section(start, rows, "\n</details>\n")


def _place(site: Site | None, function: str | None = None) -> str:
    if site is None:
        return ""
    where = code(f"{short_path(site.path)}:{site.line}")
    return f"{where} in {code(function)}" if function else where


def _listed(functions: Iterable[str], most: int = 3) -> str:
    names = list(functions)
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(map(code, names[:most])) + more


def _times(count: int) -> str:
    return f"{count}×" if count > 1 else ""


def _price(price: Price | None) -> str:
    if price is None or not price.passes:
        return ""
    waits = ", waits for the device" if price.waits else ""
    return f"{duration(price.host_seconds)}{waits} ({counted(price.passes, 'pass', 'passes')})"
