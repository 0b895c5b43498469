"""Reports of ``check`` for terminals: ``full``, with code, reason and advice, and ``concise``, a line each."""

import itertools
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import TextIO

from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from breakscan.model.findings import Finding, Kind, Mode, Severity, Site, SourceError
from breakscan.model.words import counted, grouped, sentence
from breakscan.report.check import CheckReport, summary_line
from breakscan.report.console import STYLES, code_text, paragraph, report_console
from breakscan.report.diagnostics import error_site
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

Lines = Callable[[str], list[str]]


def write_full(report: CheckReport, stream: TextIO) -> None:
    console = report_console(stream)
    result = printable(report.result)
    library = report.library
    texts = {**report.texts, **report.cells.texts}

    @lru_cache(maxsize=1)  # findings come file by file
    def lines(path: str) -> list[str]:
        return texts[path].split("\n") if path in texts else source_lines(path)

    explained: set[tuple[str, str, tuple[str, ...]]] = set()
    # Those that are not shown, by the site of the one that hides them.
    folded = grouped((finding.behind, finding) for finding in result.findings if finding.behind)
    for finding in result.findings:
        if finding.behind:
            continue
        rule = library.get(finding.rule)
        # Once per file: repeating the same words under the next finding of this rule would only add length.
        file_and_rule = report.cells.file_of(finding.site.path), finding.rule, tuple(finding.remedies)
        is_explained = file_and_rule in explained
        explained.add(file_and_rule)
        behind = folded.pop(finding.site, [])
        console.print(_finding(finding, behind, None if is_explained else rule, lines, console), end="\n\n")
    for error in result.errors:
        console.print(_error(error, lines, console), end="\n\n")
    if report.quiet:
        return
    console.print(summary_line(report))
    if result.findings:
        console.print(f"'breakscan rule {result.findings[0].rule}' explains the rule, with examples that compile.")
        if report.fixable:
            console.print(FIX_HINT.format(report.fixable, "findings"))


def _finding(finding: Finding, behind: Sequence[Finding], rule: Rule | None, lines: Lines, console: Console) -> Text:
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
    _append_frame(text, lines(finding.site.path), finding.site, finding.message, style, console)
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


def _error(error: SourceError, lines: Lines, console: Console) -> Text:
    style = STYLES[Severity.ERROR]
    text = Text()
    text.append(f"{error.path}:{error.line}:{error.column}", "bold")
    text.append("  not checked", style)
    _append_frame(text, lines(error.path), error_site(error), error.message, style, console)
    return text


def _append_frame(text: Text, lines: list[str], site: Site, message: str, style: str, console: Console) -> None:
    """Append the code with the span underlined and the message after it; only the message if there is no code."""
    code = code_text(lines, site, console.width, style, message=message) if any(lines) else None
    text.append("\n")
    text.append_text(code if code is not None else paragraph("", message, console.width))


def write_concise(report: CheckReport, stream: TextIO) -> None:
    """``path:line:column: severity BRK101 message`` for each finding, then what was not checked and the counts."""
    console = report_console(stream)
    result = printable(report.result)
    rows = [(one.site, one.severity.value, one.severity, f"{one.rule} {one_line(one)}") for one in result.findings]
    rows += [(error_site(one), "not checked", Severity.ERROR, one.message) for one in result.errors]
    for site, word, severity, words in rows:
        text = Text(f"{site.path}:{site.line}:{site.column}: ")
        console.print(text.append(word, STYLES[severity]).append(f" {words}"))
    if not report.quiet:
        console.print(summary_line(report))
