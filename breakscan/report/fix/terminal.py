"""The notes of ``fix`` on standard error: each finding, what happened to it, and why."""

from __future__ import annotations

from typing import TextIO

from rich.console import Console
from rich.text import Text

from breakscan.report.fix.outcomes import FindingOutcome, FixedFinding, fixed_findings
from breakscan.report.fix.report import FixReport
from breakscan.report.fix.words import summary_line
from breakscan.report.shared.code_frame import paragraph
from breakscan.report.shared.console import report_console
from breakscan.report.shared.printable import printable

STYLES = {
    FindingOutcome.REWRITTEN: "green",
    FindingOutcome.NOT_WRITTEN: "red",
    FindingOutcome.OBSERVED: "yellow",
    FindingOutcome.UNSAFE: "yellow",
    FindingOutcome.SOFTENS: "yellow",
    FindingOutcome.REGENERATE: "yellow",
    FindingOutcome.STAYS: "red",
}


def write_notes(report: FixReport, stream: TextIO, *, quiet: bool = False) -> None:
    """Writes a note for each finding, then what could not be read or written, and the counts; with ``quiet``, only what
    could not be read or written."""
    console = report_console(stream)
    for file in () if quiet else map(printable, report.repair.files):
        for one in fixed_findings(file, file.display in report.unwritten_paths, report.cells):
            console.print(_note(one, console))
    for error in (*map(report.cells.error, report.repair.errors), *report.unwritten):
        console.print(Text(f"{error.path}:{error.line}:{error.column}", "bold").append(f"  {error.message}", "red"))
    if not quiet:
        console.print(summary_line(report))


def _note(one: FixedFinding, console: Console) -> Text:
    finding, words = one.finding, one.words
    text = Text(f"{finding.site.path}:{finding.site.line}:{finding.site.column}", "bold")
    text.append(f"  {finding.rule} {finding.name}  ").append(one.outcome.value, STYLES[one.outcome])
    if text.cell_len + 2 + len(words) <= console.width:
        return text.append(f"  {words}")
    return text.append("\n").append_text(paragraph("", words, console.width))
