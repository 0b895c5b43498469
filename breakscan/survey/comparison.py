"""What has changed from one survey to another."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from breakscan.survey.overview import UnitRow, row_of
from breakscan.survey.stage_results import StageStatus
from breakscan.survey.store import Surveyed
from breakscan.survey.units import SurveyStage


@dataclass(frozen=True, slots=True)
class CauseChange:
    """Places of a function at which a rule (or PyTorch's reason) breaks, more or fewer than before."""

    rule: str | None
    reason: str
    function: str | None
    path: str | None
    before: int
    after: int


@dataclass(frozen=True, slots=True)
class UnitChange:
    """A unit that is not as it was."""

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
    """Compares units of the same name and conditions, whatever versions they ran with."""
    old = {(one.unit.name, one.unit.conditions): one for one in before}
    new = {(one.unit.name, one.unit.conditions): one for one in after}
    changes = []
    unchanged = 0
    for key in sorted(old.keys() & new.keys()):
        was, now = row_of(old[key]), row_of(new[key])
        causes = _causes(old[key], new[key])
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


_Cause = tuple[str | None, str, str | None, str | None]


def _causes(before: Surveyed, after: Surveyed) -> tuple[CauseChange, ...]:
    """By function and not by line, since lines move."""
    was, now = Counter(_sites(before)), Counter(_sites(after))
    changed = [cause for cause in {**was, **now} if was[cause] != now[cause]]
    return tuple(
        CauseChange(*cause, was[cause], now[cause]) for cause in sorted(changed, key=lambda one: list(map(str, one)))
    )


def _sites(one: Surveyed) -> Sequence[_Cause]:
    explained = one.results.get(SurveyStage.EXPLAIN.value)
    sites: Iterable[dict[str, Any]] = explained.facts.get("breaks", ()) if explained else ()
    return [
        (site["rule"], "" if site["rule"] else site["reason"] or "", site["function"], _package_path(site["path"]))
        for site in sites
    ]


def _package_path(path: str | None) -> str | None:
    """A path that is the same in another environment."""
    return None if path is None else path.rpartition("/site-packages/")[2]
