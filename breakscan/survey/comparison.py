"""Changes from one survey to another, and groups of them with one reason."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum

from breakscan.survey.manifest import StageStatus, SurveyStage
from breakscan.survey.overview import CauseKey, UnitRow, row_of, sites_of
from breakscan.survey.store import Surveyed


@dataclass(frozen=True, slots=True)
class CauseChange:
    """Places of a function at which a cause was found, more or fewer than before."""

    cause: CauseKey
    function: str | None
    path: str | None
    before: int
    after: int


@dataclass(frozen=True, slots=True)
class UnitChange:
    """A unit that is not as it was.  There are no causes where it ended differently."""

    before: UnitRow
    after: UnitRow
    causes: tuple[CauseChange, ...]

    @property
    def is_regression(self) -> bool:
        """True if it ran and no longer does, or breaks at more places, runs more functions eager or recompiles more
        often."""
        if self.before.status == StageStatus.OK.value != self.after.status:
            return True
        before, after = self.before.counts, self.after.counts
        return any(now > was for was, now in zip(before, after, strict=True) if was is not None and now is not None)


@dataclass(frozen=True, slots=True)
class SurveyComparison:
    """The units that are in both surveys and have changed, the number that have not, and those of one survey only."""

    changes: tuple[UnitChange, ...]
    unchanged: int
    only_before: tuple[UnitRow, ...]
    only_after: tuple[UnitRow, ...]


def compared(before: Iterable[Surveyed], after: Iterable[Surveyed]) -> SurveyComparison:
    """Compares units of the same name and conditions, whatever versions they ran with.  One that has not run yet, as in
    a survey that still runs, is not in it."""
    old, new = _that_ran(before), _that_ran(after)
    changes = []
    unchanged = 0
    for key in sorted(old.keys() & new.keys()):
        was, now = row_of(old[key]), row_of(new[key])
        causes = _causes(old[key], new[key]) if was.status == now.status else ()
        if was.status == now.status and not causes and was.counts == now.counts:
            unchanged += 1
        else:
            changes.append(UnitChange(was, now, causes))
    return SurveyComparison(
        tuple(changes),
        unchanged,
        tuple(row_of(old[key]) for key in sorted(old.keys() - new.keys())),
        tuple(row_of(new[key]) for key in sorted(new.keys() - old.keys())),
    )


def _that_ran(surveyed: Iterable[Surveyed]) -> dict[tuple[str, tuple[str, ...]], Surveyed]:
    return {(one.unit.name, one.unit.conditions): one for one in surveyed if SurveyStage.EXPLAIN.value in one.results}


def _causes(before: Surveyed, after: Surveyed) -> tuple[CauseChange, ...]:
    """By function and not by line, since lines move."""
    was, now = (
        Counter((site.cause, site.function, site.path) for site in sites_of(one, consequences=True))
        for one in (before, after)
    )
    changed = [key for key in {**was, **now} if was[key] != now[key]]
    return tuple(
        CauseChange(*key, was[key], now[key])
        for key in sorted(changed, key=lambda one: (one[0].kind.value, *map(str, (one[0].name, *one[1:]))))
    )


class Direction(Enum):
    """The meaning of a change.  ``CHANGED`` adds to one cause in units in which nothing grew as a whole."""

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
            better = Direction.BETTER if now.status == StageStatus.OK.value else Direction.CHANGED
            endings[Direction.WORSE if change.is_regression else better, was.status, now.status, now.last_said].append(
                now
            )
        for one in change.causes:
            more = Direction.WORSE if change.is_regression else Direction.CHANGED
            causes[Direction.BETTER if one.after < one.before else more, one.cause].append((now, one))
    groups: list[ChangeGroup] = [EndingGroup(*key, tuple(units)) for key, units in endings.items()]
    for (direction, cause), found in causes.items():
        units = {unit.key: unit for unit, _ in found}
        groups.append(CauseGroup(direction, cause, tuple(one for _, one in found), tuple(units.values())))
    order = list(Direction)
    return sorted(groups, key=lambda group: (order.index(group.direction), -len(group.units)))
