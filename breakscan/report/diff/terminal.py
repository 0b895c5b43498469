"""A comparison of two runs for people: numbers side by side, then what is new, worse, changed, and gone."""

from __future__ import annotations

from textwrap import wrap
from typing import Any, TextIO

from rich.text import Text

from breakscan.model.findings import Severity
from breakscan.report.console import INDENT, STYLES, report_console
from breakscan.report.diff.comparison import RunComparison
from breakscan.report.diff.sections import amount, sections, verdict
from breakscan.report.printable import visible

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
