"""How reports name the places of a run, and what happened there."""

from __future__ import annotations

import re
from typing import Protocol

from breakscan.model.findings import Severity, Site, Verdict
from breakscan.rulebook.document import Rule

VERDICT_WORDS = {Verdict.RAISES: "raises", Verdict.EAGER: "runs eager", Verdict.SPLITS: "splits the graph"}
VERDICT_SEVERITIES = {
    Verdict.RAISES: Severity.ERROR,
    Verdict.EAGER: Severity.ERROR,
    Verdict.SPLITS: Severity.WARNING,
}
_PACKAGES = re.compile(r"(?:.*/)?(?:(?:site|dist)-packages|lib(?=/python3))/")


class Line(Protocol):
    """What has a line: a site, a caller, a known break."""

    @property
    def path(self) -> str: ...

    @property
    def line(self) -> int: ...


def rule_words(rule: Rule | None) -> str:
    """``BRK101 branch-on-tensor``; nothing without a rule."""
    return f"{rule.id} {rule.name}" if rule else ""


def place(at: Line) -> str:
    """``model.py:41``."""
    return f"{short_path(at.path)}:{at.line}"


def position(site: Site) -> str:
    """``model.py:41:9``."""
    return f"{place(site)}:{site.column}"


def short_path(path: str) -> str:
    """Shortens the path of an installed file to the part from its package on."""
    return _PACKAGES.sub("", path)
