"""What ``check`` says of the code that a run compiled, for people."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TextIO

from rich.text import Text

from breakscan.agreement.result import Agreement, AgreementOutcome, Judged, Missed
from breakscan.findings import Confidence, Finding
from breakscan.reports.shared.code_frame import INDENT, paragraph
from breakscan.reports.shared.condition_words import conditions_in_words
from breakscan.reports.shared.console import report_console
from breakscan.reports.shared.printable import printable
from breakscan.reports.shared.site_words import place, rule_words
from breakscan.reports.shared.wording import counted
from breakscan.source.outline import without_locals

WIDEST = 120
_WORDS = {
    AgreementOutcome.CONFIRMED: "confirmed",
    AgreementOutcome.HIDDEN: "hidden by a break",
    AgreementOutcome.NOT_TRIGGERED: "not triggered",
    AgreementOutcome.CONTRADICTED: "contradicted",
}


def write_agreement(agreement: Agreement, stream: TextIO) -> None:
    """Writes the section that follows the report of a run."""
    console = report_console(stream)
    width = min(console.width, WIDEST)
    agreement = printable(agreement)
    console.print(Text("\nCompared with breakscan check", "bold underline"))
    console.print(paragraph("", _headline(agreement), width, indent=""))
    for heading, entries in _sections(agreement):
        if entries:
            console.print(Text(f"\n{heading}", "bold"))
        for entry in entries:
            console.print(paragraph("", entry, width, indent=INDENT))


def _headline(agreement: Agreement) -> str:
    found, files = counted(len(agreement.judged), "finding"), counted(len(agreement.files), "file")
    parts = [f"{agreement.count(outcome)} {words}" for outcome, words in _WORDS.items() if agreement.count(outcome)]
    said = f"In what was compiled, check has {found} ({files}, torch {agreement.torch})"
    words = [f"{said}{': ' if parts else ''}{', '.join(parts)}"]
    if agreement.missed:
        words.append(f"It has none for {counted(len(agreement.missed), 'recorded break site')}")
    if agreement.silenced:
        words.append(f"{counted(len(agreement.silenced), 'recorded break site')} of rules that are switched off there")
    return ".  ".join(words) + "."


def _sections(agreement: Agreement) -> Iterable[tuple[str, Sequence[str]]]:
    hiding = [
        f"{place(site)} makes {_function(group[0].function)} run eager, and hides {_listed(group)}"
        for (site, _), group in agreement.hidden.items()
    ]
    yield "Hidden: breaks that appear once the one before them is fixed", hiding
    missed = [f"{place(site.site)}  {_kind(site)}  {site.code or ''}".rstrip() for site in agreement.missed]
    yield "Missed: broke in this run, and check has no finding there", missed
    contradicted = [_named(one) for one in agreement.judged if one.outcome is AgreementOutcome.CONTRADICTED]
    yield "Contradicted: check expects a break, and this run compiled the line without one", contradicted
    waiting = [_named(one) for one in agreement.judged if one.outcome is AgreementOutcome.NOT_TRIGGERED]
    yield "Not triggered: may break in another run", waiting
    yield "Not checked", [f"{error.path}:{error.line}  {error.message}" for error in agreement.errors]


def _named(one: Judged) -> str:
    finding = one.finding
    if condition := conditions_in_words(finding.conditions):
        why = f", only when {condition}"
    elif finding.confidence is Confidence.POSSIBLE:
        why = ", a guess"
    else:
        why = ""
    return f"{place(finding.site)}  {finding.rule} {finding.name}{why}"


def _listed(findings: Iterable[Finding]) -> str:
    return ", ".join(f"line {finding.site.line} {finding.rule}" for finding in findings)


def _function(name: str | None) -> str:
    return without_locals(name or "the function")


def _kind(site: Missed) -> str:
    return rule_words(site.rule) or f"{site.gb_id or ''} {site.gb_type}".strip()
