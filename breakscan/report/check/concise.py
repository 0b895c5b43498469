"""One line for each finding, for editors and grep."""

from __future__ import annotations

from typing import TextIO

from rich.text import Text

from breakscan.model.findings import Severity
from breakscan.report.check.report import CheckReport
from breakscan.report.check.words import summary_line
from breakscan.report.shared.console import STYLES, report_console
from breakscan.report.shared.finding_words import one_line
from breakscan.report.shared.printable import printable


def write_concise(report: CheckReport, stream: TextIO) -> None:
    """``path:line:column: severity BRK101 message`` for each finding, then what was not checked and the counts."""
    console = report_console(stream)
    result = printable(report.result)
    for finding in result.findings:
        site = finding.site
        text = Text(f"{site.path}:{site.line}:{site.column}: ")
        text.append(finding.severity.value, STYLES[finding.severity])
        text.append(f" {finding.rule} {one_line(finding)}")
        console.print(text)
    for error in result.errors:
        text = Text(f"{error.path}:{error.line}:{error.column}: ")
        text.append("not checked", STYLES[Severity.ERROR])
        text.append(f" {error.message}")
        console.print(text)
    if not report.quiet:
        console.print(summary_line(report))
