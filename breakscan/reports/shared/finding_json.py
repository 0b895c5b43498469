"""A finding in JSON: the same in the reports of ``check`` and of ``fix``."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from breakscan.findings import Finding, Region
from breakscan.reports.shared.condition_words import conditions_in_words
from breakscan.reports.shared.finding_words import how_compiled


def finding_object(finding: Finding) -> dict[str, Any]:
    """A finding as a dictionary of plain values."""
    return {
        "rule": finding.rule,
        "name": finding.name,
        "kind": finding.kind.value,
        "severity": finding.severity.value,
        "confidence": finding.confidence.value,
        "message": finding.message,
        "site": asdict(finding.site),
        "function": finding.function,
        "region": _region(finding.region) if finding.region else None,
        "gb": list(finding.gb),
        "rewrite": asdict(finding.rewrite) if finding.rewrite else None,
        "condition": conditions_in_words(finding.conditions),
        "behind": asdict(finding.behind) if finding.behind else None,
        "observed": finding.observed or None,
        "mode": finding.mode.value,
    }


def _region(region: Region) -> dict[str, Any]:
    return {"path": region.path, "line": region.line, "how": how_compiled(region), "entry": region.entry}
