"""The findings of a file that no edit was applied to."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from breakscan.fix.result import Applied, Refused
from breakscan.model.findings import Finding


@dataclass(slots=True)
class Left:
    """What became of them: see :class:`breakscan.fix.result.FileRepair`."""

    held: list[Applied] = field(default_factory=list)
    softened: list[Applied] = field(default_factory=list)
    refused: list[Refused] = field(default_factory=list)
    without: list[Finding] = field(default_factory=list)


def joined_left(several: Sequence[Left], applied: Iterable[Applied]) -> Left:
    """What became of each finding, where it differs with the facts: the best, and of equals the first."""
    taken = {(one.finding.rule, one.finding.site) for one in applied}

    def new(finding: Finding) -> bool:
        known = len(taken)
        taken.add((finding.rule, finding.site))
        return len(taken) > known

    held = [one for left in several for one in left.held]
    # An edit that is safe for some values comes before one that is unsafe for all.
    held = [one for one in sorted(held, key=_is_unsafe) if new(one.finding)]
    return Left(
        sorted(held, key=lambda one: _place(one.finding)),
        [one for left in several for one in left.softened if new(one.finding)],
        [one for left in several for one in left.refused if new(one.finding)],
        [one for left in several for one in left.without if new(one)],
    )


def _is_unsafe(one: Applied) -> bool:
    return bool(one.differences)


def _place(finding: Finding) -> tuple[int, int, str]:
    return finding.site.line, finding.site.column, finding.rule
