"""A comparison of two runs as a comment on a pull request."""

from __future__ import annotations

from typing import TextIO

from breakscan.report.diff.comparison import RunComparison
from breakscan.report.diff.sections import amount, sections, verdict
from breakscan.report.printable import visible


def write_diff_markdown(comparison: RunComparison, stream: TextIO) -> None:
    """Writes GitHub-flavoured Markdown."""
    stream.write(f"**{verdict(comparison.regressions)}**\n\n")
    for line in comparison.moved:
        stream.write(f"{_code(line)}  \n")
    if comparison.moved:
        stream.write("\n")
    stream.write("| | before | after |\n| --- | ---: | ---: |\n")
    for number in comparison.numbers:
        one, other = (amount(value, number.unit) for value in (number.before, number.after))
        stream.write(f"| {number.name} | {one} | {f'**{other}**' if other != one else other} |\n")
    for heading, _, entries in sections(comparison):
        stream.write(f"\n### {heading}\n\n")
        for head, details in entries:
            stream.write(f"- {_code(head)}\n")
            for detail in details:
                stream.write(f"  - {_code(detail)}\n")


def _code(text: str) -> str:
    """Text that markdown shows as it is: between more backticks than it holds in a row."""
    text = visible(text)
    longest = max((len(run) for run in "".join(c if c == "`" else " " for c in text).split()), default=0)
    fence = "`" * (longest + 1)
    pad = " " if text.startswith("`") or text.endswith("`") else ""
    return f"{fence}{pad}{text}{pad}{fence}"
