"""What a survey says of all its units together."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from breakscan.survey.stage_results import StageResult, StageStatus
from breakscan.survey.store import Surveyed
from breakscan.survey.units import SurveyStage


@dataclass(frozen=True, slots=True)
class UnitRow:
    """A unit in a table.  Counts are None where ``explain`` did not succeed; ``breaks`` are places, ``offered`` the
    findings that ``fix`` can take away, ``proved`` the changes that ``verify`` accepts."""

    name: str
    conditions: tuple[str, ...]
    torch: str | None
    status: str
    breaks: int | None
    eager: int | None
    recompiles: int | None
    graphs: int | None
    compile_seconds: float | None
    seconds: float
    peak: int | None
    offered: int | None
    proved: int | None
    speed: float | None
    said: str

    @property
    def counts(self) -> tuple[int | None, int | None, int | None]:
        """Breaks, functions that run eager, and recompiles."""
        return self.breaks, self.eager, self.recompiles

    @property
    def is_whole(self) -> bool:
        """Whether the program ran, and all that it compiled was one graph for each call."""
        return self.breaks == 0 and self.eager == 0


@dataclass(frozen=True, slots=True)
class Cause:
    """A rule, or PyTorch's reason where no rule knows it, with the units in which it breaks and at how many places."""

    rule: str | None
    reason: str
    units: int
    places: int


@dataclass(frozen=True, slots=True)
class PlaceCount:
    """A line that breaks, and in how many units."""

    path: str
    line: int
    rule: str | None
    units: int


@dataclass(frozen=True, slots=True)
class ConditionCount:
    """Units under the same conditions: how many there are, ran, and are not whole."""

    conditions: tuple[str, ...]
    torch: str | None
    units: int
    ran: int
    broken: int


@dataclass(frozen=True, slots=True)
class SurveyOverview:
    """All rows, and what they have in common; causes and places come by the number of units."""

    rows: Sequence[UnitRow]
    counts: Sequence[ConditionCount]
    causes: Sequence[Cause]
    places: Sequence[PlaceCount]
    statuses: Mapping[str, int] = field(default_factory=dict)


def overview(surveyed: Iterable[Surveyed]) -> SurveyOverview:
    """The overview of a survey."""
    rows: list[UnitRow] = []
    by_cause: dict[tuple[str | None, str], dict[int, set[tuple[Any, Any]]]] = defaultdict(lambda: defaultdict(set))
    by_place: dict[tuple[str, int, str | None], set[int]] = defaultdict(set)
    for number, one in enumerate(surveyed):
        rows.append(row_of(one))
        explained = one.results.get(SurveyStage.EXPLAIN.value)
        for site in explained.facts.get("breaks", ()) if explained else ():
            by_cause[_cause(site)][number].add((site["path"], site["line"]))
            if site["path"] is not None:
                by_place[site["path"], site["line"], site["rule"]].add(number)
    causes = [
        Cause(rule, reason, len(units), len(set().union(*units.values()))) for (rule, reason), units in by_cause.items()
    ]
    places = [PlaceCount(path, line, rule, len(units)) for (path, line, rule), units in by_place.items()]
    return SurveyOverview(
        rows,
        _counts(rows),
        sorted(causes, key=lambda one: (-one.units, -one.places, one.rule or "~", one.reason)),
        sorted(places, key=lambda one: (-one.units, one.path, one.line)),
        dict(Counter(row.status for row in rows)),
    )


def row_of(one: Surveyed) -> UnitRow:
    """The row of a unit."""
    explained = one.results.get(SurveyStage.EXPLAIN.value)
    ok = explained is not None and explained.status == StageStatus.OK.value
    facts = explained.facts if explained is not None and ok else {}
    fixed, verified, benched = (
        _facts(one.results, stage) for stage in (SurveyStage.FIX, SurveyStage.VERIFY, SurveyStage.BENCH)
    )
    proofs = verified.get("proofs")
    outcomes = fixed.get("outcomes")
    return UnitRow(
        name=one.unit.name,
        conditions=one.unit.conditions,
        torch=one.environment.torch,
        status=explained.status if explained else "waiting",
        breaks=len(facts["breaks"]) if facts else None,
        eager=len(facts["eager"]) if facts else None,
        recompiles=len(facts["recompiles"]) if facts else None,
        graphs=facts.get("graphs"),
        compile_seconds=facts.get("compile_seconds"),
        seconds=sum(result.seconds for result in one.results.values()),
        peak=max((result.peak for result in one.results.values() if result.peak is not None), default=None),
        offered=sum(count for name, count in outcomes.items() if name not in ("declined", "without"))
        if outcomes
        else None,
        proved=sum(proof["verdict"] == "accepted" for proof in proofs) if proofs is not None else None,
        speed=_speed(benched),
        said=explained.said if explained and not ok else "",
    )


def _facts(results: Mapping[str, StageResult], stage: SurveyStage) -> Mapping[str, Any]:
    result = results.get(stage.value)
    return result.facts if result is not None else {}


def _speed(facts: Mapping[str, Any]) -> float | None:
    """How many times as fast as eager the best way is."""
    ratios = [way["ratio"]["median"] for way in facts.get("ways", ()) if way["ratio"]]
    return max(ratios, default=None)


def _cause(site: Mapping[str, Any]) -> tuple[str | None, str]:
    return site["rule"], "" if site["rule"] else (site["reason"] or "").partition("\n")[0]


def _counts(rows: Iterable[UnitRow]) -> list[ConditionCount]:
    groups: dict[tuple[tuple[str, ...], str | None], list[UnitRow]] = defaultdict(list)
    for row in rows:
        groups[row.conditions, row.torch].append(row)
    return [
        ConditionCount(
            conditions,
            torch,
            len(group),
            sum(row.breaks is not None for row in group),
            sum(row.breaks is not None and not row.is_whole for row in group),
        )
        for (conditions, torch), group in sorted(groups.items(), key=lambda item: (item[0][0], item[0][1] or ""))
    ]
