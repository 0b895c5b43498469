"""One line a finding, as editors and grep like it."""

from __future__ import annotations

from typing import TextIO

from rich.text import Text

from breakscan.findings import CheckResult, Severity
from breakscan.reports.shared.console import STYLES, report_console
from breakscan.reports.shared.printable import printable
from breakscan.reports.shared.wording import CheckRun, one_line, summary_line


def write_concise(result: CheckResult, stream: TextIO, run: CheckRun) -> None:
    """``path:line:column: severity BRK101 message`` for each finding, then what was not checked and the counts."""
    console = report_console(stream)
    result = printable(result)
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
    console.print(summary_line(result, run))
