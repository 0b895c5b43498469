"""The parts of a comparison that the terminal and Markdown show alike: headings, lines and numbers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from breakscan.explain.gates.site_match import KnownBreak
from breakscan.model.findings import Severity
from breakscan.model.words import place, short_path
from breakscan.report.console import STYLES
from breakscan.report.diff.comparison import CauseCounts, ChangedBreak, EagerFunction, RecompileCause, RunComparison

Entries = list[tuple[str, list[str]]]


def sections(comparison: RunComparison) -> Iterator[tuple[str, str, Entries]]:
    """Each heading with a style and what stands below it: a line, and lines about that."""
    worse = [change for change in comparison.changed if change.is_worse]
    other = [change for change in comparison.changed if not change.is_worse]
    more = [counts for counts in comparison.causes if counts.after > counts.before]
    fewer = [counts for counts in comparison.causes if counts.after < counts.before]
    bad, good = STYLES[comparison.new[0].verdict.severity] if comparison.new else "", ""
    error = STYLES[Severity.ERROR]
    found: list[tuple[str, str, Entries]] = [
        ("New graph breaks", bad, [_entry(one) for one in comparison.new]),
        ("Worse graph breaks", error, [_changed(change) for change in worse]),
        ("New eager functions", error, [(_eager(f), []) for f in comparison.new_eager]),
        ("More recompiles", error, _counted(more)),
        ("Changed graph breaks", good, [_changed(change) for change in other]),
        ("Gone graph breaks", good, [_entry(one) for one in comparison.gone]),
        ("No longer eager", good, [(_eager(f), []) for f in comparison.gone_eager]),
        ("Fewer recompiles", good, _counted(fewer)),
    ]
    return (section for section in found if section[2])


def _entry(one: KnownBreak) -> tuple[str, list[str]]:
    return f"{place(one)}  {one.verdict.words}{_times(one.count)}  {_kind(one)}{_inside(one)}", _text(one)


def _changed(change: ChangedBreak) -> tuple[str, list[str]]:
    before, after = change.before, change.after
    said = []
    if before.verdict is not after.verdict:
        said.append(f"{before.verdict.words} → {after.verdict.words}")
    if before.count != after.count:
        said.append(f"{before.count}× → {after.count}×")
    if before.kind != after.kind:
        said.append(f"{before.kind} → {after.kind}")
    kind = "" if before.kind != after.kind else f"  {_kind(after)}"
    return f"{place(after)}  {', '.join(said)}{kind}{_inside(after)}", _text(after)


def _counted(causes: Sequence[CauseCounts]) -> Entries:
    return [(f"{_cause(counts.cause)}: {counts.before} → {counts.after}", []) for counts in causes]


def _cause(cause: RecompileCause) -> str:
    rule = f"  {cause.rule}" if cause.rule else ""
    return f"{short_path(cause.path)}{rule}  {cause.about} in {cause.function or 'a function'}"


def _eager(function: EagerFunction) -> str:
    part = "the rest of " if function.rest_only else ""
    return f"{short_path(function.path)}  {part}{function.function}"


def _kind(one: KnownBreak) -> str:
    return one.rule or one.gb or one.type


def _inside(one: KnownBreak) -> str:
    return f"  in {one.function}" if one.function else ""


def _text(one: KnownBreak) -> list[str]:
    return [one.code] if one.code else []


def _times(count: int) -> str:
    return f" {count}×" if count > 1 else ""


def amount(value: float, unit: str) -> str:
    return f"{value:.1f} {unit}" if unit else f"{value:,.0f}"


def verdict(regressions: Sequence[str]) -> str:
    return f"Regression: {', '.join(regressions)}." if regressions else "No regression."
