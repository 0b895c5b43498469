"""How reports name the places of a run, and what happened there."""

from __future__ import annotations

import re

from breakscan.findings import Severity, Verdict
from breakscan.reports.shared.console import STYLES
from breakscan.rulebook.document import Rule

VERDICT_WORDS = {Verdict.RAISES: "raises", Verdict.EAGER: "runs eager", Verdict.SPLITS: "splits the graph"}
VERDICT_STYLES = {
    Verdict.RAISES: STYLES[Severity.ERROR],
    Verdict.EAGER: STYLES[Severity.ERROR],
    Verdict.SPLITS: STYLES[Severity.WARNING],
}
_PACKAGES = re.compile(r"(?:.*/)?(?:(?:site|dist)-packages|lib(?=/python3))/")


def rule_words(rule: Rule | None) -> str:
    """``BRK101 branch-on-tensor``; nothing without a rule."""
    return f"{rule.id} {rule.name}" if rule else ""


def short_path(path: str) -> str:
    """Shortens the path of an installed file to the part from its package on."""
    return _PACKAGES.sub("", path)
