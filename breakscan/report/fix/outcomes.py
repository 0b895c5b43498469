"""What happened to each finding of a repair."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum

from breakscan.fix.result import Applied, FileRepair, Refused
from breakscan.fix.support.difference import TakenOut
from breakscan.model.findings import Finding
from breakscan.model.words import counted, grouped_reasons
from breakscan.report.shared.notebook_cells import NotebookCells
from breakscan.report.shared.value_words import rests_on_words

MOST_NAMES = 5
"""The number of operations that are named in a line."""


class FindingOutcome(str, Enum):
    """What happened to a finding, as reports write it."""

    REWRITTEN = "rewritten"
    NOT_WRITTEN = "not written"
    OBSERVED = "observed"
    """It would be rewritten by an edit that is safe for what a recorded run saw."""
    UNSAFE = "unsafe"
    SOFTENS = "softens"
    REGENERATE = "regenerate"
    """An edit of the code that the file is generated from fixes it."""
    STAYS = "stays"


@dataclass(frozen=True, slots=True)
class FixedFinding:
    """A finding, what happened to it, and the rewrite or the reason in words."""

    finding: Finding
    outcome: FindingOutcome
    words: str


def fixed_findings(file: FileRepair, is_unwritten: bool, cells: NotebookCells) -> list[FixedFinding]:
    """The findings of a printable file, in the order of their lines, with places as reports show them."""
    applied = FindingOutcome.NOT_WRITTEN if is_unwritten else FindingOutcome.REWRITTEN
    found = [FixedFinding(one.finding, applied, _rewrite(one)) for one in file.applied]
    found += [FixedFinding(one.finding, _held(one), _rewrite(one)) for one in file.held]
    found += [FixedFinding(one.finding, FindingOutcome.SOFTENS, _rewrite(one)) for one in file.softened]
    found += [_refused(one) for one in file.refused]
    found += [FixedFinding(one, FindingOutcome.STAYS, "no rewrite is known") for one in file.without]
    found.sort(key=lambda one: (one.finding.site.line, one.finding.site.column))
    return [replace(one, finding=cells.finding(one.finding)) for one in found]


def _held(one: Applied) -> FindingOutcome:
    return FindingOutcome.UNSAFE if one.differences else FindingOutcome.OBSERVED


def _refused(one: Refused) -> FixedFinding:
    if one.at_origin is None:
        return FixedFinding(one.finding, FindingOutcome.STAYS, _reasons(one))
    site = one.at_origin.finding.site
    words = f"fixed at {site.path}:{site.line} by {_rewrite(one.at_origin)}"
    return FixedFinding(one.finding, FindingOutcome.REGENERATE, words)


def _reasons(refused: Refused) -> str:
    """Why the nearest rewrites decline."""
    return grouped_reasons((one.rewrite, one.text) for one in refused.nearest)


def taken_out_words(code: TakenOut) -> str:
    """``takes at least 3 operations out of the graph (sin, +, cos)``."""
    count = counted(len(code.operations), "operation")
    if not code.operations:
        return "takes code without known operations out of the graph"
    names = list(dict.fromkeys(code.operations))
    shown = ", ".join([*names[:MOST_NAMES], *(["…"] if len(names) > MOST_NAMES else [])])
    return f"takes {'' if code.is_complete else 'at least '}{count} out of the graph ({shown})"


def _rewrite(one: Applied) -> str:
    differences = [one.difference] if one.difference else []
    differences += [taken_out_words(one.takes_out)] if one.takes_out else []
    differences += [f"it still breaks if `{one.remains}`"] if one.remains else []
    differences += [rests_on_words(one.rests_on)] if one.rests_on else []
    return f"{one.rewrite}: {', and '.join(differences)}" if differences else one.rewrite
