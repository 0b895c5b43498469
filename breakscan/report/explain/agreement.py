"""The comparison of ``check`` with a run, for people and as JSON."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from typing import Any, TextIO

from rich.text import Text

from breakscan.explanation.agreement.result import Agreement, AgreementOutcome, Judged
from breakscan.model.findings import Confidence, Finding, Mode
from breakscan.model.problem import Problem, ProblemKind
from breakscan.model.words import counted, listed, place
from breakscan.report.console import INDENT, paragraph, report_console
from breakscan.report.findings import MODE_WORDS, conditions_in_words
from breakscan.report.printable import printable
from breakscan.source.spans import without_locals


def hidden_sentence(behind: Sequence[Finding]) -> str:
    """``It hides 3 more findings of breakscan check (lines 41, 44 and 52).``"""
    lines = [str(line) for line in sorted({finding.site.line for finding in behind})]
    where = f"{'line' if len(lines) == 1 else 'lines'} {listed(lines, 'line', 6)}"
    if len(behind) == 1:
        return f"It hides one more finding of breakscan check, {behind[0].rule} {behind[0].name} ({where})."
    return f"It hides {len(behind)} more findings of breakscan check ({where})."


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
    words = [_found(agreement)]
    if agreement.missed:
        words.append(f"It has none for {counted(len(agreement.missed), 'recorded problem')}")
    if agreement.silenced:
        words.append(f"{counted(len(agreement.silenced), 'recorded problem')} of rules that are switched off there")
    return ".  ".join(words) + "."


def _found(agreement: Agreement) -> str:
    """``In what was compiled, check has 3 findings (1 file, torch 2.13): 2 confirmed, 1 not triggered``."""
    counts = Counter(one.outcome for one in agreement.judged)
    parts = [f"{counts[outcome]} {words}" for outcome, words in _WORDS.items() if counts[outcome]]
    found, files = counted(len(agreement.judged), "finding"), counted(len(agreement.files), "file")
    mode = f", {MODE_WORDS[agreement.mode]}" if agreement.mode is Mode.FULLGRAPH else ""
    head = f"In what was compiled, check has {found} ({files}, torch {agreement.torch}{mode})"
    return ": ".join(filter(None, (head, ", ".join(parts))))


def _sections(agreement: Agreement) -> Iterable[tuple[str, Sequence[str]]]:
    hiding = [
        f"{place(site)} makes {without_locals(group[0].function or 'the function')} run eager, and hides "
        + ", ".join(f"line {finding.site.line} {finding.rule}" for finding in group)
        for (site, _), group in agreement.hidden.items()
    ]
    yield "Hidden: breaks that appear once the one before them is fixed", hiding
    missed = [f"{place(site.site)}  {_kind(site)}  {site.code or ''}".rstrip() for site in agreement.missed]
    yield "Missed: in this run, and check has no finding there", missed
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


def _kind(site: Problem) -> str:
    if site.kind is ProblemKind.RECOMPILES:
        return f"{site.what} {site.times} {site.rule_words}: {site.why}"
    return site.rule_words or f"{site.gb_id or ''} {site.gb_type}".strip()


def agreement_object(agreement: Agreement) -> dict[str, Any]:
    """The agreement as plain dictionaries and lists."""
    return {
        "torch": agreement.torch,
        "mode": agreement.mode.value,
        "files": list(agreement.files),
        "findings": [_judged(one) for one in agreement.judged],
        "missed": [
            {
                "kind": one.kind.value,
                "rule": one.rule,
                "gb_type": one.gb_type,
                "gb_id": one.gb_id,
                "site": asdict(one.site),
                "silenced": silenced,
            }
            for silenced, group in ((False, agreement.missed), (True, agreement.silenced))
            for one in group
        ],
        "errors": [asdict(error) for error in agreement.errors],
    }


def _judged(one: Judged) -> dict[str, Any]:
    finding = one.finding
    return {
        "rule": finding.rule,
        "name": finding.name,
        "kind": finding.kind.value,
        "confidence": finding.confidence.value,
        "condition": conditions_in_words(finding.conditions),
        "message": finding.message,
        "site": asdict(finding.site),
        "function": finding.function,
        "outcome": one.outcome.value,
        "by": asdict(one.by) if one.by else None,
        "traced": one.is_traced,
    }
