"""A comparison of two runs, for people, for a pull request, and as JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from textwrap import wrap
from typing import Any, TextIO

from rich.text import Text

from breakscan.explanation.lock_file import KnownBreak
from breakscan.model.findings import Severity
from breakscan.model.words import place, short_path
from breakscan.report.console import INDENT, STYLES, report_console
from breakscan.report.diff.comparison import CauseCounts, ChangedBreak, EagerFunction, RecompileCause, RunComparison
from breakscan.report.markdown import code
from breakscan.report.printable import visible

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
    times = f" {one.count}×" if one.count > 1 else ""
    return f"{place(one)}  {one.words}{times}  {_kind(one)}{_inside(one)}", _text(one)


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


def amount(value: float, unit: str) -> str:
    return f"{value:.1f} {unit}" if unit else f"{value:,.0f}"


def verdict(regressions: Sequence[str]) -> str:
    return f"Regression: {', '.join(regressions)}." if regressions else "No regression."


_WHOLE_WORDS: dict[str, Any] = {"break_long_words": False, "break_on_hyphens": False}


def write_diff_terminal(comparison: RunComparison, stream: TextIO) -> None:
    """For people: numbers side by side, then what is new, worse, otherwise changed, and gone."""
    console = report_console(stream)
    for line in comparison.moved:
        console.print(Text(visible(line), "dim"))
    wide = max(len(number.name) for number in comparison.numbers)
    old = [amount(number.before, number.unit) for number in comparison.numbers]
    new = [amount(number.after, number.unit) for number in comparison.numbers]
    left, right = max(6, *map(len, old)), max(5, *map(len, new))
    console.print(Text(f"{'':{wide}}  {'before':>{left}}  {'after':>{right}}", "dim"))
    for number, one, other in zip(comparison.numbers, old, new, strict=True):
        style = "bold" if number.before != number.after else ""
        console.print(Text(f"{number.name:{wide}}  {one:>{left}}  {other:>{right}}", style))
    for heading, style, entries in sections(comparison):
        console.print(Text(f"\n{heading}", "bold underline"))
        for head, details in entries:
            lines = wrap(visible(head), console.width, subsequent_indent=INDENT, **_WHOLE_WORDS)
            console.print(Text("\n".join(lines), style))
            for detail in details:
                console.print(Text(INDENT + visible(detail), "dim"))
    console.print()
    bad = comparison.regressions
    console.print(Text(verdict(bad), STYLES[Severity.ERROR] if bad else "bold green"))


def write_diff_markdown(comparison: RunComparison, stream: TextIO) -> None:
    """Writes GitHub-flavoured Markdown."""
    stream.write(f"**{verdict(comparison.regressions)}**\n\n")
    for line in comparison.moved:
        stream.write(f"{code(visible(line))}  \n")
    if comparison.moved:
        stream.write("\n")
    stream.write("| | before | after |\n| --- | ---: | ---: |\n")
    for number in comparison.numbers:
        one, other = (amount(value, number.unit) for value in (number.before, number.after))
        stream.write(f"| {number.name} | {one} | {f'**{other}**' if other != one else other} |\n")
    for heading, _, entries in sections(comparison):
        stream.write(f"\n### {heading}\n\n")
        for head, details in entries:
            stream.write(f"- {code(visible(head))}\n")
            for detail in details:
                stream.write(f"  - {code(visible(detail))}\n")


SCHEMA = 1


def write_diff_json(comparison: RunComparison, stream: TextIO) -> None:
    """Writes one JSON object, ASCII only, and a line end."""
    made = {
        "schema": SCHEMA,
        "regressions": comparison.regressions,
        "moved": list(comparison.moved),
        "numbers": {n.key: {"before": n.before, "after": n.after} for n in comparison.numbers},
        "new": [_plain(one) for one in comparison.new],
        "gone": [_plain(one) for one in comparison.gone],
        "changed": [{"before": _plain(c.before), "after": _plain(c.after)} for c in comparison.changed],
        "recompiles": [{**asdict(c.cause), "before": c.before, "after": c.after} for c in comparison.causes],
        "new_eager": [asdict(function) for function in comparison.new_eager],
        "gone_eager": [asdict(function) for function in comparison.gone_eager],
    }
    json.dump(made, stream, indent=2)
    stream.write("\n")


def _plain(one: KnownBreak) -> dict[str, object]:
    return {**asdict(one), "verdict": one.verdict.value}
