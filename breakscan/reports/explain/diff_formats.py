"""The forms that a comparison of two runs can take."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from textwrap import wrap
from typing import Any, TextIO

from rich.text import Text

from breakscan.findings import Severity
from breakscan.reports.explain.diff import CauseChange, Counted, EagerFunction, ReportChange, ReportDifference
from breakscan.reports.shared.code_frame import INDENT
from breakscan.reports.shared.console import STYLES, report_console
from breakscan.reports.shared.printable import visible
from breakscan.reports.shared.site_words import VERDICT_STYLES, VERDICT_WORDS, short_path
from breakscan.runtime.gates.site_match import KnownBreak

SCHEMA = 1
_WHOLE_WORDS: dict[str, Any] = {"break_long_words": False, "break_on_hyphens": False}


def write_terminal(difference: ReportDifference, stream: TextIO) -> None:
    """For people: numbers side by side, then what is new, worse, otherwise changed, and gone."""
    console = report_console(stream)
    for line in difference.moved:
        console.print(Text(visible(line), "dim"))
    wide = max(len(number.name) for number in difference.numbers)
    old = [_amount(number.before, number.unit) for number in difference.numbers]
    new = [_amount(number.after, number.unit) for number in difference.numbers]
    left, right = max(6, *map(len, old)), max(5, *map(len, new))
    console.print(Text(f"{'':{wide}}  {'before':>{left}}  {'after':>{right}}", "dim"))
    for number, one, other in zip(difference.numbers, old, new, strict=True):
        style = "bold" if number.before != number.after else ""
        console.print(Text(f"{number.name:{wide}}  {one:>{left}}  {other:>{right}}", style))
    for heading, style, entries in _sections(difference):
        console.print(Text(f"\n{heading}", "bold underline"))
        for head, details in entries:
            lines = wrap(visible(head), console.width, subsequent_indent=INDENT, **_WHOLE_WORDS)
            console.print(Text("\n".join(lines), style))
            for detail in details:
                console.print(Text(INDENT + visible(detail), "dim"))
    console.print()
    bad = difference.regressions
    console.print(Text(_verdict(bad), STYLES[Severity.ERROR] if bad else "bold green"))


def write_markdown(difference: ReportDifference, stream: TextIO) -> None:
    """For a comment on a pull request."""
    stream.write(f"**{_verdict(difference.regressions)}**\n\n")
    for line in difference.moved:
        stream.write(f"{_code(line)}  \n")
    if difference.moved:
        stream.write("\n")
    stream.write("| | before | after |\n| --- | ---: | ---: |\n")
    for number in difference.numbers:
        one, other = (_amount(value, number.unit) for value in (number.before, number.after))
        stream.write(f"| {number.name} | {one} | {f'**{other}**' if other != one else other} |\n")
    for heading, _, entries in _sections(difference):
        stream.write(f"\n### {heading}\n\n")
        for head, details in entries:
            stream.write(f"- {_code(head)}\n")
            for detail in details:
                stream.write(f"  - {_code(detail)}\n")


def write_json(difference: ReportDifference, stream: TextIO) -> None:
    """For programs: one object, ASCII only, and a line end."""
    made = {
        "schema": SCHEMA,
        "regressions": difference.regressions,
        "moved": list(difference.moved),
        "numbers": {n.key: {"before": n.before, "after": n.after} for n in difference.numbers},
        "new": [_plain(one) for one in difference.new],
        "gone": [_plain(one) for one in difference.gone],
        "changed": [{"before": _plain(c.before), "after": _plain(c.after)} for c in difference.changed],
        "recompiles": [{**asdict(c.thing), "before": c.before, "after": c.after} for c in difference.causes],
        "new_eager": [asdict(function) for function in difference.new_eager],
        "gone_eager": [asdict(function) for function in difference.gone_eager],
    }
    json.dump(made, stream, indent=2)
    stream.write("\n")


WRITERS: dict[str, Callable[[ReportDifference, TextIO], None]] = {
    "terminal": write_terminal,
    "json": write_json,
    "markdown": write_markdown,
}

_Entries = list[tuple[str, list[str]]]


def _sections(difference: ReportDifference) -> Iterator[tuple[str, str, _Entries]]:
    """Each heading with a style and what stands below it: a line, and lines about that."""
    worse = [change for change in difference.changed if change.is_worse]
    other = [change for change in difference.changed if not change.is_worse]
    more = [counted for counted in difference.causes if counted.after > counted.before]
    fewer = [counted for counted in difference.causes if counted.after < counted.before]
    bad, good = VERDICT_STYLES[difference.new[0].verdict] if difference.new else "", ""
    error = STYLES[Severity.ERROR]
    sections: list[tuple[str, str, _Entries]] = [
        ("New graph breaks", bad, [_entry(one) for one in difference.new]),
        ("Worse graph breaks", error, [_changed(change) for change in worse]),
        ("New eager functions", error, [(_eager(f), []) for f in difference.new_eager]),
        ("More recompiles", error, _counted(more)),
        ("Changed graph breaks", good, [_changed(change) for change in other]),
        ("Gone graph breaks", good, [_entry(one) for one in difference.gone]),
        ("No longer eager", good, [(_eager(f), []) for f in difference.gone_eager]),
        ("Fewer recompiles", good, _counted(fewer)),
    ]
    return (section for section in sections if section[2])


def _entry(one: KnownBreak) -> tuple[str, list[str]]:
    return f"{_place(one)}  {VERDICT_WORDS[one.verdict]}{_times(one.count)}  {_kind(one)}{_inside(one)}", _text(one)


def _changed(change: ReportChange) -> tuple[str, list[str]]:
    before, after = change.before, change.after
    said = []
    if before.verdict is not after.verdict:
        said.append(f"{VERDICT_WORDS[before.verdict]} → {VERDICT_WORDS[after.verdict]}")
    if before.count != after.count:
        said.append(f"{before.count}× → {after.count}×")
    if before.kind != after.kind:
        said.append(f"{before.kind} → {after.kind}")
    kind = "" if before.kind != after.kind else f"  {_kind(after)}"
    return f"{_place(after)}  {', '.join(said)}{kind}{_inside(after)}", _text(after)


def _counted(causes: Sequence[Counted]) -> _Entries:
    return [(f"{_cause(counted.thing)}: {counted.before} → {counted.after}", []) for counted in causes]


def _cause(cause: CauseChange) -> str:
    rule = f"  {cause.rule}" if cause.rule else ""
    return f"{short_path(cause.path)}{rule}  {cause.about} in {cause.function or 'a function'}"


def _eager(function: EagerFunction) -> str:
    part = "the rest of " if function.rest_only else ""
    return f"{short_path(function.path)}  {part}{function.function}"


def _place(one: KnownBreak) -> str:
    return f"{short_path(one.path)}:{one.line}"


def _kind(one: KnownBreak) -> str:
    return one.rule or one.gb or one.type


def _inside(one: KnownBreak) -> str:
    return f"  in {one.function}" if one.function else ""


def _text(one: KnownBreak) -> list[str]:
    return [one.code] if one.code else []


def _times(count: int) -> str:
    return f" {count}×" if count > 1 else ""


def _amount(value: float, unit: str) -> str:
    return f"{value:.1f} {unit}" if unit else f"{value:,.0f}"


def _verdict(regressions: Sequence[str]) -> str:
    return f"Regression: {', '.join(regressions)}." if regressions else "No regression."


def _code(text: str) -> str:
    """Text that markdown shows as it is: between more backticks than it holds in a row."""
    text = visible(text)
    longest = max((len(run) for run in "".join(c if c == "`" else " " for c in text).split()), default=0)
    fence = "`" * (longest + 1)
    pad = " " if text.startswith("`") or text.endswith("`") else ""
    return f"{fence}{pad}{text}{pad}{fence}"


def _plain(one: KnownBreak) -> dict[str, object]:
    return {**asdict(one), "verdict": one.verdict.value}
