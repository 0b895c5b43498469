"""What an editor shows: messages, titles of edits, and the page of a rule."""

from __future__ import annotations

from breakscan.findings import Finding
from breakscan.reports.diagnostics.finding import finding_diagnostic
from breakscan.reports.shared.printable import printable
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
