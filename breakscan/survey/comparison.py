"""What has changed from one survey to another."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from breakscan.survey.stage_results import StageStatus
from breakscan.survey.store import Surveyed
from breakscan.survey.unit_row import CauseKey, UnitRow, row_of, sites_of
from breakscan.survey.units import SurveyStage


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
        """Whether it ran and does not any more, or breaks at more places, runs more functions eager or recompiles more
        often."""
        if self.before.status == StageStatus.OK.value != self.after.status:
            return True
        before, after = self.before.counts, self.after.counts
        return any(now > was for was, now in zip(before, after, strict=True) if was is not None and now is not None)


@dataclass(frozen=True, slots=True)
class SurveyComparison:
    """What is in both surveys and has changed, how many units have not, and what is in one of them only."""

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
