"""What happened to each finding of a repair."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from breakscan.findings import Finding
from breakscan.repair.result import Applied, FileRepair, Refused


class FindingOutcome(str, Enum):
    """What happened to a finding, as reports write it."""

    REWRITTEN = "rewritten"
    NOT_WRITTEN = "not written"
    UNSAFE = "unsafe"
    STAYS = "stays"


@dataclass(frozen=True, slots=True)
class FixedFinding:
    """A finding, what happened to it, and the rewrite or the reason in words."""

    finding: Finding
    outcome: FindingOutcome
    words: str


def fixed_findings(file: FileRepair, is_unwritten: bool) -> list[FixedFinding]:
    """The findings of a printable file, in the order of their lines."""
    applied = FindingOutcome.NOT_WRITTEN if is_unwritten else FindingOutcome.REWRITTEN
    found = [FixedFinding(one.finding, applied, _rewrite(one)) for one in file.applied]
    found += [FixedFinding(one.finding, FindingOutcome.UNSAFE, _rewrite(one)) for one in file.held]
    found += [FixedFinding(one.finding, FindingOutcome.STAYS, _reasons(one)) for one in file.refused]
    found += [FixedFinding(one, FindingOutcome.STAYS, "no rewrite is known") for one in file.without]
    return sorted(found, key=lambda one: (one.finding.site.line, one.finding.site.column))


def _reasons(refused: Refused) -> str:
    """Why the closest rewrites decline, each reason once."""
    by_reason: dict[str, list[str]] = {}
    for reason in [one for one in refused.reasons if one.near] or refused.reasons:
        by_reason.setdefault(reason.text, []).append(reason.rewrite)
    return "; ".join(f"{', '.join(rewrites)}: {text}" for text, rewrites in by_reason.items())


def _rewrite(one: Applied) -> str:
    differences = [one.difference] if one.difference else []
    differences += [f"it still breaks where `{one.remains}`"] if one.remains else []
    return f"{one.rewrite}: {', and '.join(differences)}" if differences else one.rewrite
