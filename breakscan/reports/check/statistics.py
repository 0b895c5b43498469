"""How often each rule was found, instead of the findings."""

from __future__ import annotations

from collections import Counter
from typing import TextIO

from breakscan.findings import CheckResult
from breakscan.reports.shared.printable import printable
from breakscan.reports.shared.wording import CheckRun, summary_line


def write_statistics(result: CheckResult, stream: TextIO, run: CheckRun) -> None:
    """One line a rule, the most frequent first, then the counts."""
    counts = Counter((finding.rule, finding.name) for finding in result.findings)
    width = len(str(max(counts.values(), default=0)))
    for (rule, name), count in sorted(counts.items(), key=lambda item: (-item[1], item[0])):
        stream.write(f"{count:>{width}}  {rule}  {name}\n")
    for error in printable(result.errors):
        stream.write(f"{error.path}:{error.line}:{error.column}: not checked {error.message}\n")
    stream.write(summary_line(result, run) + "\n")
