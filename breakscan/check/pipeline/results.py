"""The result of one file, and findings merged into one per rule and site, over all regions that reach it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import takewhile
from pathlib import Path

from breakscan.check.pipeline.shadowed import Reach
from breakscan.check.project.index import ModuleIndex
from breakscan.check.project.roots import CompileCalls, PathLine, is_test
from breakscan.model.findings import (
    Condition,
    ConditionKind,
    Confidence,
    Finding,
    Region,
    Severity,
    Site,
    SourceError,
)

CONFIDENCE_ORDER = (Confidence.CERTAIN, Confidence.LIKELY, Confidence.CONDITIONAL, Confidence.POSSIBLE)


@dataclass(slots=True)
class FileResult:
    """The result of checking one file, at an absolute path: findings in it and in the files that are reached from it.

    ``suppressed`` are the findings that a comment suppresses.  ``depends`` are the files that the result depends on:
    absolute path → digest of the content (see :class:`.Digests`), ``""`` where a file was looked for and not found.
    ``reaches`` are the sites after breaks that make a function run eager.  ``calls`` has the calls that compile,
    ``compiled`` the functions in a region, by path and line, each with its region.
    """

    path: str = ""
    findings: list[Finding] = field(default_factory=list)
    suppressed: list[Finding] = field(default_factory=list)
    errors: list[SourceError] = field(default_factory=list)
    warnings: list[SourceError] = field(default_factory=list)
    depends: dict[str, str] = field(default_factory=dict)
    reaches: list[Reach] = field(default_factory=list)
    calls: CompileCalls = field(default_factory=CompileCalls)
    compiled: dict[PathLine, Region] = field(default_factory=dict)


class Merged:
    """Findings by rule and site.  Of several the surest stays, with the root that speaks best for it."""

    def __init__(self) -> None:
        self._found: dict[tuple[str, Site], Finding] = {}
        self._where: dict[tuple[str, Site], ModuleIndex | None] = {}

    def add(self, finding: Finding, where: ModuleIndex | None = None) -> None:
        """Adds a finding; ``where`` is the file that holds it."""
        key = finding.rule, finding.site
        known = self._found.get(key)
        self._where[key] = where
        if known is None:
            self._found[key] = finding
            return
        surer = min(known, finding, key=_precedence)
        if known.mode is not finding.mode and is_assumed(known.region) is not is_assumed(finding.region):
            # The code says how it is compiled.
            surer = finding if is_assumed(known.region) else known
        region = min(known.region, finding.region, key=lambda r: weight(r, finding.site.path))
        self._found[key] = replace(surer, region=region)

    def findings(self) -> list[Finding]:
        return list(self._found.values())

    def located(self) -> Iterator[tuple[ModuleIndex, Finding]]:
        """The findings with the files that hold them."""
        for key, finding in self._found.items():
            where = self._where[key]
            assert where is not None
            yield where, finding


class CheckedFrom:
    """For each finding, one of the files whose check reports it: its own, else the first by path."""

    def __init__(self) -> None:
        self._by_finding: dict[tuple[str, Site], str] = {}
        self._cwd = Path.cwd()

    def add(self, finding: Finding, root: str) -> None:
        """Adds that the check of the file at an absolute path reports a finding."""
        key = finding.rule, finding.site
        known = self._by_finding.get(key)
        own = os.path.join(self._cwd, finding.site.path)
        if known is None or root == own or (known != own and root < known):
            self._by_finding[key] = root

    def by_path(self) -> dict[str, tuple[str, ...]]:
        """For each file with findings, by its path as it is reported: files whose checks report all of them."""
        found: dict[str, set[str]] = {}
        for (_, site), root in self._by_finding.items():
            found.setdefault(site.path, set()).add(root)
        return {path: tuple(sorted(roots)) for path, roots in found.items()}


def is_assumed(region: Region | None) -> bool:
    """True if nothing but a test, which works under settings of its own, says that code is compiled."""
    return region is not None and (region.assumed is not None or is_test(region.path))


_SEVERITIES = (Severity.ERROR, Severity.WARNING, Severity.INFO)
_CONDITIONS = tuple(ConditionKind)


def _precedence(finding: Finding) -> tuple[int, int, int, list[_ConditionOrder], str, str]:
    """The surest comes first, then the worst; the rest only makes the choice the same in any order."""
    confidence, severity = CONFIDENCE_ORDER.index(finding.confidence), _SEVERITIES.index(finding.severity)
    conditions = list(map(_condition_order, finding.conditions))
    return confidence, severity, finding.observed, conditions, finding.via or "", finding.message


_ConditionOrder = tuple[bool, bool, str, int, tuple[str, ...]]


def _condition_order(condition: Condition) -> _ConditionOrder:
    kind = _CONDITIONS.index(condition.kind)
    return not condition.subject, not condition.outcome, condition.subject, kind, condition.classes


def weight(region: Region | None, path: str) -> tuple[bool, bool, bool, int, str, int]:
    """The order of regions: compiled by the program before assumed, and the nearer before the farther."""
    if region is None:
        return True, True, True, 0, "", 0
    pairs = zip(region.path.split("/"), path.split("/"), strict=False)
    shared = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
    return False, region.assumed is not None, region.path != path, -shared, region.path, region.line
