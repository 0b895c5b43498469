"""How often each rule was found, instead of the findings."""

from __future__ import annotations

import json
from collections import Counter
from typing import TextIO

from breakscan.report.check.json import check_object
from breakscan.report.check.report import CheckReport
from breakscan.report.check.words import summary_line
from breakscan.report.shared.printable import printable


def write_statistics_json(report: CheckReport, stream: TextIO) -> None:
    """The counts as one JSON object, ASCII only, and a line end: what ``check --format json`` has, without findings."""
    whole = check_object(report)
    del whole["findings"]
    counted_rules = [{"rule": rule, "name": name, "findings": count} for (rule, name), count in _counts(report)]
    json.dump({**whole, "statistics": counted_rules}, stream, indent=2)
    stream.write("\n")


def _counts(report: CheckReport) -> list[tuple[tuple[str, str], int]]:
    """Each rule with the number of its findings, the most frequent first."""
    counts = Counter((finding.rule, finding.name) for finding in report.result.findings)
    return sorted(counts.items(), key=lambda item: (-item[1], item[0]))


def write_statistics(report: CheckReport, stream: TextIO) -> None:
    """One line for each rule, the most frequent first, then the counts."""
    counts = _counts(report)
    width = len(str(max((count for _, count in counts), default=0)))
    for (rule, name), count in counts:
        stream.write(f"{count:>{width}}  {rule}  {name}\n")
    for error in printable(report.result.errors):
        stream.write(f"{error.path}:{error.line}:{error.column}: not checked {error.message}\n")
    stream.write(summary_line(report) + "\n")
