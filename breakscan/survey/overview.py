"""The results of all units of a survey together."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from breakscan.survey.store import Surveyed
from breakscan.survey.unit_row import WAITING, CauseKey, CauseKind, SurveyedSite, UnitRow, costs_of, row_of, sites_of
from breakscan.survey.units import StageStatus


@dataclass(frozen=True, slots=True)
class CauseCount:
    """A cause, with the number of units that have it, of places, and of the units in which it ``costs_most``, as far as
    that was measured; and the ``seconds`` that it cost all of them, None where no unit measured it."""

    cause: CauseKey
    units: int
    places: int
    costs_most: int
    seconds: float | None


@dataclass(frozen=True, slots=True)
class PlaceCount:
    """A line that breaks, and in how many units."""

    path: str
    line: int
    rule: str | None
    units: int


@dataclass(frozen=True, slots=True)
class ConditionCount:
    """Units under the same conditions: how many there are, are still waiting, ran, and are not whole."""

    conditions: tuple[str, ...]
    torch: str | None
    units: int
    waiting: int
    ran: int
    broken: int


@dataclass(frozen=True, slots=True)
class EndingCount:
    """Units that failed with the same last line of output."""

    status: str
    said: str
    units: int


@dataclass(frozen=True, slots=True)
class SurveyOverview:
    """All rows, and what they have in common: under the same conditions, by cause and line of breaks, and why units did
    not run; each by the number of units."""

    rows: Sequence[UnitRow]
    counts: Sequence[ConditionCount]
    causes: Sequence[CauseCount]
    places: Sequence[PlaceCount]
    endings: Sequence[EndingCount]
    statuses: Mapping[str, int] = field(default_factory=dict)


def overview(surveyed: Iterable[Surveyed]) -> SurveyOverview:
    """The overview of a survey."""
    units = [(row_of(one), list(sites_of(one))) for one in surveyed]
    rows = [row for row, _ in units]
    sites = [found for _, found in units]
    return SurveyOverview(
        rows,
        _counts(rows),
        _causes(sites),
        _places(sites),
        _endings(rows),
        dict(Counter(row.status for row in rows)),
    )


class _CauseTally:
    """The counts of one cause so far."""

    def __init__(self) -> None:
        self.units: set[int] = set()
        self.places: set[tuple[str | None, int | None]] = set()
        self.costs_most = 0
        self.costs: list[float] = []


def _causes(units: Iterable[list[SurveyedSite]]) -> list[CauseCount]:
    tallies: dict[CauseKey, _CauseTally] = defaultdict(_CauseTally)
    for number, sites in enumerate(units):
        for site in sites:
            tally = tallies[site.cause]
            tally.units.add(number)
            tally.places.add((site.path, site.line))
        for compiling in (False, True):
            costs = costs_of(sites, compiling=compiling)
            for cause, seconds in costs.items():
                tallies[cause].costs.append(seconds)
            if any(costs.values()):
                tallies[max(costs, key=lambda cause: costs[cause])].costs_most += 1
    counts = [
        CauseCount(cause, len(one.units), len(one.places), one.costs_most, sum(one.costs) if one.costs else None)
        for cause, one in tallies.items()
    ]
    return sorted(counts, key=lambda one: (-one.units, -one.places, one.cause.rule or "~", one.cause.reason))


def _places(units: Iterable[list[SurveyedSite]]) -> list[PlaceCount]:
    found = Counter(
        place
        for sites in units
        for place in {
            (site.path, site.line, site.cause.rule)
            for site in sites
            if site.cause.kind is CauseKind.BREAK and site.path is not None and site.line is not None
        }
    )
    places = [PlaceCount(path, line, rule, count) for (path, line, rule), count in found.items()]
    return sorted(places, key=lambda one: (-one.units, one.path, one.line, one.rule or ""))


def _endings(rows: Iterable[UnitRow]) -> list[EndingCount]:
    """Of those that have ended."""
    ended = [row for row in rows if row.status not in (StageStatus.OK.value, WAITING)]
    found = Counter((row.status, row.last_said) for row in ended)
    return [EndingCount(status, said, count) for (status, said), count in found.most_common()]


def _counts(rows: Iterable[UnitRow]) -> list[ConditionCount]:
    groups: dict[tuple[tuple[str, ...], str | None], list[UnitRow]] = defaultdict(list)
    for row in rows:
        groups[row.conditions, row.torch].append(row)
    return [
        ConditionCount(
            conditions,
            torch,
            len(group),
            sum(row.status == WAITING for row in group),
            sum(row.breaks is not None for row in group),
            sum(row.breaks is not None and not row.is_whole for row in group),
        )
        for (conditions, torch), group in sorted(groups.items(), key=lambda item: (item[0][0], item[0][1] or ""))
    ]
