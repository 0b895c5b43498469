"""The result of one file, and findings merged into one per rule and site, over all regions that reach it."""

from dataclasses import dataclass, field, replace
from itertools import takewhile
from typing import Any

from breakscan.check.pipeline.shadowed import Reach
from breakscan.check.project.roots import CompileCalls, PathLine, is_test
from breakscan.model.findings import ConditionKind, Confidence, Finding, Region, Severity, Site, SourceError

CONFIDENCE_ORDER = (Confidence.CERTAIN, Confidence.LIKELY, Confidence.CONDITIONAL, Confidence.POSSIBLE)


@dataclass(slots=True)
class FileResult:
    """The result of checking one file, at an absolute path: findings in it and in the files that are reached from it.
    ``suppressed`` are the findings that a comment suppresses. ``depends`` are the files that the result depends on:
    absolute path → digest of the content (see :class:`.Digests`), ``""`` where a file was looked for and not found.
    ``reaches`` are the sites after breaks that make a function run eager. ``calls`` has the calls that compile,
    ``compiled`` the functions in a region, by path and line, each with its region."""

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

    def add(self, finding: Finding) -> None:
        key = finding.rule, finding.site
        known = self._found.get(key)
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


def is_assumed(region: Region | None) -> bool:
    """True if nothing but a test, which works under settings of its own, says that code is compiled."""
    return region is not None and (region.assumed is not None or is_test(region.path))


_SEVERITIES = (Severity.ERROR, Severity.WARNING, Severity.INFO)
_CONDITIONS = tuple(ConditionKind)


def _precedence(finding: Finding) -> tuple[int, int, int, list[tuple[Any, ...]], str, str]:
    """The surest comes first, then the worst; the rest only makes the choice the same in any order."""
    confidence, severity = CONFIDENCE_ORDER.index(finding.confidence), _SEVERITIES.index(finding.severity)
    conditions = [
        (not one.subject, not one.outcome, one.subject, _CONDITIONS.index(one.kind), one.classes)
        for one in finding.conditions
    ]
    return confidence, severity, finding.observed, conditions, finding.via or "", finding.message


def weight(region: Region | None, path: str) -> tuple[bool, bool, bool, int, str, int]:
    """The order of regions: compiled by the program before assumed, and the nearer before the farther."""
    if region is None:
        return True, True, True, 0, "", 0
    pairs = zip(region.path.split("/"), path.split("/"), strict=False)
    shared = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
    return False, region.assumed is not None, region.path != path, -shared, region.path, region.line
