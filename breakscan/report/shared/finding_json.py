"""A finding in JSON: the same in the reports of ``check`` and of ``fix``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from breakscan.model.findings import CheckTarget, Finding, Mode, Region, Site
from breakscan.report.shared.condition_words import conditions_in_words
from breakscan.report.shared.finding_words import how_compiled
from breakscan.report.shared.notebook_cells import NotebookCells
from breakscan.rulebook.library import Library


def finding_object(finding: Finding, cells: NotebookCells, library: Library) -> dict[str, Any]:
    """A finding, whose places are as reports show them, as a dictionary of plain values."""
    rule = library.get(finding.rule)
    return {
        "rule": finding.rule,
        "name": finding.name,
        "kind": finding.kind.value,
        "severity": finding.severity.value,
        "confidence": finding.confidence.value,
        "message": finding.message,
        "site": cells.object(finding.site),
        "function": finding.function,
        "region": _region(finding.region, cells) if finding.region else None,
        "gb": list(finding.gb),
        "rewrite": asdict(finding.rewrite) if finding.rewrite else None,
        "rewrites": list(rule.rewrites) if rule else [],
        "condition": conditions_in_words(finding.conditions),
        "behind": cells.object(finding.behind) if finding.behind else None,
        "observed": finding.observed or None,
        "mode": finding.mode.value,
        "torch": finding.torch,
    }


def targets_object(targets: Sequence[CheckTarget]) -> dict[str, Any]:
    """What files are checked for: several where their configurations differ, and the first of them."""
    listed = [{"torch": one.torch, "fullgraph": one.mode is Mode.FULLGRAPH, "mode": one.mode.value} for one in targets]
    return {"target": listed[0], "targets": listed}


def _region(region: Region, cells: NotebookCells) -> dict[str, Any]:
    start = cells.object(Site(region.path, region.line, 1, region.line, 1))
    at: dict[str, Any] = {key: value for key, value in start.items() if key in ("path", "cell", "line")}
    return {**at, "how": how_compiled(region), "entry": region.entry}
