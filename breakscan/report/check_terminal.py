"""Reports of ``check`` for terminals: ``full``, with code, reason and advice, and ``concise``, a line each."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from typing import TextIO

from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from breakscan.model.findings import Finding, Kind, Mode, Severity, Site, SourceError
from breakscan.model.words import counted, sentence
from breakscan.report.check import CheckReport, summary_line
from breakscan.report.console import STYLES, code_text, paragraph, report_console
from breakscan.report.findings import (
    FIX_HINT,
    behind_sentence,
    conditions_in_words,
    one_line,
    region_words,
    verdict_sentence,
)
from breakscan.report.printable import printable
from breakscan.report.sources import source_lines
from breakscan.rulebook.document import Rule
from breakscan.rulebook.remedies import finding_remedies


def write_full(report: CheckReport, stream: TextIO) -> None:
    """Writes the report."""
    console = report_console(stream)
    result = printable(report.result)
    library = report.library
    sources = _Sources({**report.texts, **report.cells.texts})
    explained: set[tuple[str, str, tuple[str, ...]]] = set()
    folded = _folded(result.findings)
    for finding in result.findings:
        if finding.behind:
            continue
        rule = library.get(finding.rule)
        # Once per file: repeating the same words under the next finding of this rule would only add length.
        file_and_rule = report.cells.file_of(finding.site.path), finding.rule, tuple(finding.remedies)
        is_explained = file_and_rule in explained
        explained.add(file_and_rule)
        behind = folded.pop(finding.site, [])
        console.print(_finding(finding, behind, None if is_explained else rule, sources, console), end="\n\n")
    for error in result.errors:
        console.print(_error(error, sources, console), end="\n\n")
    if report.quiet:
        return
    console.print(summary_line(report))
    if result.findings:
        console.print(f"'breakscan rule {result.findings[0].rule}' explains the rule, with examples that compile.")
        if report.fixable:
            console.print(FIX_HINT.format(report.fixable, "findings"))


def _folded(findings: Iterable[Finding]) -> dict[Site, list[Finding]]:
    """The findings that are not shown, by the site of the one that hides them."""
    folded: dict[Site, list[Finding]] = {}
    for finding in findings:
        if finding.behind:
            folded.setdefault(finding.behind, []).append(finding)
    return folded


class _Sources:
    """The lines of the files that findings lie in; findings come file by file, so one is kept at a time."""

    def __init__(self, texts: Mapping[str, str]) -> None:
        self._texts = texts
        self._path: str | None = None
        self._lines: list[str] = []

    def lines(self, path: str) -> list[str]:
        if path != self._path:
            self._path = path
            self._lines = self._texts[path].split("\n") if path in self._texts else source_lines(path)
        return self._lines


def _finding(
    finding: Finding, behind: Sequence[Finding], rule: Rule | None, sources: _Sources, console: Console
) -> Text:
    """``rule`` is None where its reason and advice stand above already; ``behind`` are the findings it hides."""
    style = STYLES[finding.severity]
    text = Text()
    text.append(f"{finding.site.path}:{finding.site.line}:{finding.site.column}", "bold")
    text.append(f"  {finding.severity.value}", style)
    text.append(f"  {finding.rule} {finding.name}", "bold")
    region = region_words(finding)
    if region and text.cell_len + cell_len(region) + 4 > console.width:
        text.append("\n").append_text(paragraph("", region, console.width, style="dim"))
    elif region:
        text.append(f"    {region}", "dim")
    _append_frame(text, sources, finding.site, finding.message, style, console)
    said = []
    if rule and (finding.kind is Kind.EXPORT or finding.mode is not Mode.EXPORT):  # most speak of Dynamo
        said.append(("Why: ", f"{rule.why}."))
    if condition := conditions_in_words(finding.conditions):
        said.append(("Only when ", f"{condition}."))
    if finding.observed:
        said.append(("Observed ", f"in {counted(finding.observed, 'call')} of the recorded run."))
    if verdict := verdict_sentence(finding):
        said.append(("", verdict))
    labels = itertools.chain(["Instead: "], itertools.repeat("Or: "))
    said += [(label, sentence(one.words)) for label, one in zip(labels, finding_remedies(finding, rule), strict=False)]
    if behind:
        said.append(("", behind_sentence(behind)))
    for label, words in said:
        text.append("\n").append_text(paragraph(label, words, console.width))
    return text


def _error(error: SourceError, sources: _Sources, console: Console) -> Text:
    style = STYLES[Severity.ERROR]
    text = Text()
    text.append(f"{error.path}:{error.line}:{error.column}", "bold")
    text.append("  not checked", style)
    site = Site(error.path, error.line, error.column, error.line, error.column + 1)
    _append_frame(text, sources, site, error.message, style, console)
    return text


def _append_frame(text: Text, sources: _Sources, site: Site, message: str, style: str, console: Console) -> None:
    """Append the code with the span underlined and the message after it; only the message if there is no code."""
    lines = sources.lines(site.path)
    code = code_text(lines, site, console.width, style, message=message) if any(lines) else None
    text.append("\n")
    text.append_text(code if code is not None else paragraph("", message, console.width))


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
