"""Changes of units by what they have in common: many units often change for one reason."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum

from breakscan.survey.comparison import CauseChange, UnitChange
from breakscan.survey.stage_results import StageStatus
from breakscan.survey.unit_row import CauseKey, UnitRow


class Direction(Enum):
    """What a change means.  One of ``CHANGED`` adds to one cause in units in which nothing grew as a whole."""

    WORSE = "worse"
    CHANGED = "changed"
    BETTER = "better"


@dataclass(frozen=True, slots=True)
class EndingGroup:
    """Units that ended in one way and now end in another, with the same last line of what they say."""

    direction: Direction
    before: str
    after: str
    said: str
    units: tuple[UnitRow, ...]


@dataclass(frozen=True, slots=True)
class CauseGroup:
    """Units in which a cause was found at more places than before, or at fewer."""

    direction: Direction
    cause: CauseKey
    changes: tuple[CauseChange, ...]
    units: tuple[UnitRow, ...]


ChangeGroup = EndingGroup | CauseGroup


def change_groups(changes: Iterable[UnitChange]) -> Sequence[ChangeGroup]:
    """The groups, what is worse first, then by the number of units.  A unit is in one for each of its causes."""
    endings: dict[tuple[Direction, str, str, str], list[UnitRow]] = defaultdict(list)
    causes: dict[tuple[Direction, CauseKey], list[tuple[UnitRow, CauseChange]]] = defaultdict(list)
    for change in changes:
        was, now = change.before, change.after
        if was.status != now.status:
            endings[_of_ending(change), was.status, now.status, now.last_said].append(now)
        for one in change.causes:
            causes[_of_cause(change, one), one.cause].append((now, one))
    groups: list[ChangeGroup] = [EndingGroup(*key, tuple(units)) for key, units in endings.items()]
    for (direction, cause), found in causes.items():
        units = {unit.key: unit for unit, _ in found}
        groups.append(CauseGroup(direction, cause, tuple(one for _, one in found), tuple(units.values())))
    order = list(Direction)
    return sorted(groups, key=lambda group: (order.index(group.direction), -len(group.units)))


def _of_ending(change: UnitChange) -> Direction:
    if change.is_regression:
        return Direction.WORSE
    return Direction.BETTER if change.after.status == StageStatus.OK.value else Direction.CHANGED


def _of_cause(unit: UnitChange, change: CauseChange) -> Direction:
    if change.after < change.before:
        return Direction.BETTER
    return Direction.WORSE if unit.is_regression else Direction.CHANGED
