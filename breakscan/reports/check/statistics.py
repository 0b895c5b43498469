"""How often each rule was found, instead of the findings."""

from __future__ import annotations

from collections import Counter
from typing import TextIO

from breakscan.reports.check.report import CheckReport
from breakscan.reports.check.words import summary_line
from breakscan.reports.shared.printable import printable


def write_statistics(report: CheckReport, stream: TextIO) -> None:
    """One line for each rule, the most frequent first, then the counts."""
    counts = Counter((finding.rule, finding.name) for finding in report.result.findings)
    width = len(str(max(counts.values(), default=0)))
    for (rule, name), count in sorted(counts.items(), key=lambda item: (-item[1], item[0])):
        stream.write(f"{count:>{width}}  {rule}  {name}\n")
    for error in printable(report.result.errors):
        stream.write(f"{error.path}:{error.line}:{error.column}: not checked {error.message}\n")
    stream.write(summary_line(report) + "\n")
