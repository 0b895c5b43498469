"""Messages, titles of edits and pages of rules, as an editor shows them."""

from __future__ import annotations

from collections.abc import Sequence

from breakscan.explain.function_costs import FunctionCost
from breakscan.model.findings import CompiledFunction, Finding
from breakscan.model.words import counted, duration
from breakscan.report.diagnostics import finding_diagnostic
from breakscan.report.printable import printable
from breakscan.rulebook.document import Rule

SCAN_DIED = "the process that reads the workspace was killed; what other files compile is not known"


def message_words(finding: Finding, rule: Rule | None) -> str:
    """What a finding is, and what to write instead."""
    return finding_diagnostic(printable(finding), rule).text


def page_of(finding: Finding, rule: Rule | None) -> str:
    """The document of a rule below what the finding says; Markdown."""
    head = f"**{finding.rule} {finding.name}**"
    said = f"{head}\n\n{message_words(finding, rule)}"
    return f"{said}\n\n---\n\n{rule.body}" if rule else said


def ignore_title(rule: str) -> str:
    """The title of the edit that suppresses a finding."""
    return f"Ignore {rule} here"


def fix_title(finding: Finding, rewrite: str, differences: str | None) -> str:
    """The title of an edit.  ``differences`` is None for one that is safe."""
    safety = f"unsafe: {differences}" if differences else "safe"
    return f"Fix {finding.rule} with {rewrite} ({safety})"


def compiled_words(places: Sequence[CompiledFunction]) -> str:
    """Where a function is handed to the compiler."""
    named = list(dict.fromkeys(f"{one.by}:{one.line}" for one in places))
    more = f" and {counted(len(named) - 1, 'other place')}" if len(named) > 1 else ""
    return printable(f"compiled from {named[0]}{more}")


def cost_words(cost: FunctionCost) -> str | None:
    """What a function cost in the last recorded run; None where there is nothing to say."""
    said = [
        f"{duration(cost.seconds / cost.calls)} a call" if cost.calls else None,
        "runs eager" if cost.runs_eager else None,
        counted(cost.breaks, "graph break") if cost.breaks else None,
        counted(cost.recompiles, "recompile") if cost.recompiles else None,
    ]
    told = ", ".join(filter(None, said))
    return f"in the last recording: {told}" if told else None
