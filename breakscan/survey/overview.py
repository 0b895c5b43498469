"""The results of a survey: each unit as a row of a table, all of them together, and their changes since another one."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from breakscan.model.words import grouped
from breakscan.survey.manifest import StageResult, StageStatus, SurveyStage
from breakscan.survey.store import Surveyed

WAITING = "waiting"  # the status of a unit that has not run yet


class CauseKind(str, Enum):
    """The effect of a cause.  Recompiles cost time of compiling, the others time of the calls."""

    BREAK = "break"
    EAGER = "eager"
    RECOMPILE = "recompile"


@dataclass(frozen=True, slots=True)
class CauseKey:
    """A rule, or PyTorch's reason where no rule knows it, and what it causes."""

    kind: CauseKind
    rule: str | None
    reason: str

    @property
    def name(self) -> str:
        """The rule, else the reason; empty where nothing is known."""
        return self.rule or self.reason


@dataclass(frozen=True, slots=True)
class SurveyedSite:
    """Where a unit breaks, runs eager or recompiles.  ``path`` is the same in all environments, and ``seconds`` what it
    cost in all, None where that was not measured."""

    cause: CauseKey
    path: str | None
    line: int | None
    function: str | None
    seconds: float | None


@dataclass(frozen=True, slots=True)
class Tuned:
    """The best program of ``tune``: the kinds of its ``changes``, the breaks, recompiles and functions run eager
    ``before`` and ``after`` them, and how many times as fast a step is.  Without changes, nothing was better."""

    changes: tuple[str, ...] = ()
    before: tuple[int, ...] = ()
    after: tuple[int, ...] = ()
    speed: float | None = None


@dataclass(frozen=True, slots=True)
class UnitRow:
    """A unit in a table; its results are kept under ``key``.  Counts are None where ``explain`` did not succeed;
    ``breaks`` are places, ``cost`` the seconds of the calls that breaks and eager functions took, ``costliest`` what
    took most of them, ``causes`` and ``files`` why and where it breaks or runs eager; ``proved`` are the changes that
    ``verify`` accepts, and ``tuned`` is None where ``tune`` did not end."""

    key: str
    name: str
    conditions: tuple[str, ...]
    torch: str | None
    status: str
    breaks: int | None
    eager: int | None
    recompiles: int | None
    graphs: int | None
    cost: float | None
    costliest: str | None
    causes: tuple[str, ...]
    files: tuple[str, ...]
    compile_seconds: float | None
    seconds: float
    peak: int | None
    proved: int | None
    speed: float | None
    tuned: Tuned | None
    said: str

    @property
    def counts(self) -> tuple[int | None, int | None, int | None]:
        return self.breaks, self.eager, self.recompiles

    @property
    def last_said(self) -> str:
        """The last line of what it said, such as the error that ended it."""
        return self.said.rstrip().rpartition("\n")[2].strip()

    @property
    def is_whole(self) -> bool:
        """True if the program ran, and compiled one graph for each call."""
        return self.breaks == 0 and self.eager == 0


def row_of(one: Surveyed) -> UnitRow:
    explained = one.results.get(SurveyStage.EXPLAIN.value)
    ok = explained is not None and explained.status == StageStatus.OK.value
    facts = explained.facts if explained is not None and ok else {}
    proofs = _facts(one.results, SurveyStage.VERIFY).get("proofs")
    ways = _facts(one.results, SurveyStage.BENCH).get("ways", ())
    sites = list(sites_of(one))
    costs = costs_of(sites)
    lost = [site for site in sites if site.cause.kind is not CauseKind.RECOMPILE]
    return UnitRow(
        key=one.unit.key(one.environment),
        name=one.unit.name,
        conditions=one.unit.conditions,
        torch=one.environment.torch,
        status=explained.status if explained else WAITING,
        breaks=len(facts["breaks"]) if facts else None,
        eager=len(facts["eager"]) if facts else None,
        recompiles=len(facts["recompiles"]) if facts else None,
        graphs=facts.get("graphs"),
        cost=sum(costs.values()) if costs else 0.0 if facts and not lost else None,
        costliest=max(costs, key=lambda cause: costs[cause]).name if any(costs.values()) else None,
        causes=tuple(dict.fromkeys(site.cause.name for site in lost)),
        files=tuple(dict.fromkeys(site.path for site in lost if site.path is not None)),
        compile_seconds=facts.get("compile_seconds"),
        seconds=sum(result.seconds for result in one.results.values()),
        peak=max((result.peak for result in one.results.values() if result.peak is not None), default=None),
        # That of all changes together names no rewrite.
        proved=sum(proof["verdict"] == "accepted" and proof["rewrite"] is not None for proof in proofs)
        if proofs is not None
        else None,
        # That of the best way, as a multiple of eager.
        speed=max((way["ratio"]["median"] for way in ways if way["ratio"]), default=None),
        tuned=_tuned(_facts(one.results, SurveyStage.TUNE)),
        said=explained.said if explained and not ok else "",
    )


def _tuned(facts: Mapping[str, Any]) -> Tuned | None:
    if not facts:
        return None
    if (best := facts["best"]) is None:
        return Tuned()
    before, after = (
        tuple(best[name][when] for name in ("breaks", "recompiles", "eager_functions")) for when in ("before", "after")
    )
    kinds = dict.fromkeys(one["kind"] for one in best["candidates"])
    return Tuned(tuple(kinds), before, after, best["ratio"] and best["ratio"]["median"])


def sites_of(one: Surveyed, *, consequences: bool = False) -> Iterator[SurveyedSite]:
    """Where a unit breaks, runs eager and recompiles; what a break explains only with ``consequences``."""
    facts = _facts(one.results, SurveyStage.EXPLAIN)
    for kind, name in ((CauseKind.BREAK, "breaks"), (CauseKind.EAGER, "eager"), (CauseKind.RECOMPILE, "recompiles")):
        for site in facts.get(name, ()):
            if site.get("of_break") and not consequences:
                continue
            # The guard of a recompile is another one each time.
            known = site["rule"] or kind is CauseKind.RECOMPILE
            cause = CauseKey(kind, site["rule"], "" if known else (site["reason"] or "").partition("\n")[0])
            path = None if site["path"] is None else site["path"].rpartition("/site-packages/")[2]
            yield SurveyedSite(cause, path, site["line"], site["function"], site["seconds"])


def costs_of(sites: Iterable[SurveyedSite], *, compiling: bool = False) -> Mapping[CauseKey, float]:
    """Return the known seconds that each cause cost the calls of a unit, or, if ``compiling``, the compiler."""
    costs: dict[CauseKey, float] = defaultdict(float)
    for site in sites:
        if site.seconds is not None and (site.cause.kind is CauseKind.RECOMPILE) is compiling:
            costs[site.cause] += site.seconds
    return costs


def _facts(results: Mapping[str, StageResult], stage: SurveyStage) -> Mapping[str, Any]:
    result = results.get(stage.value)
    return result.facts if result is not None else {}


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
    """All rows, and what they have in common: conditions, causes and lines of breaks, and why units did not run."""

    rows: Sequence[UnitRow]
    counts: Sequence[ConditionCount]
    causes: Sequence[CauseCount]
    places: Sequence[PlaceCount]
    endings: Sequence[EndingCount]
    statuses: Mapping[str, int] = field(default_factory=dict)


def overview(surveyed: Iterable[Surveyed]) -> SurveyOverview:
    units = [(row_of(one), list(sites_of(one))) for one in surveyed]
    rows = [row for row, _ in units]
    sites = [found for _, found in units]
    return SurveyOverview(
        rows, _counts(rows), _causes(sites), _places(sites), _endings(rows), dict(Counter(row.status for row in rows))
    )


def _causes(units: Iterable[list[SurveyedSite]]) -> list[CauseCount]:
    found: dict[CauseKey, list[tuple[int, SurveyedSite]]] = defaultdict(list)
    seconds: dict[CauseKey, float] = defaultdict(float)
    costs_most: Counter[CauseKey] = Counter()
    for number, sites in enumerate(units):
        for site in sites:
            found[site.cause].append((number, site))
        for compiling in (False, True):
            costs = costs_of(sites, compiling=compiling)
            for cause, spent in costs.items():
                seconds[cause] += spent
            if any(costs.values()):
                costs_most[max(costs, key=lambda cause: costs[cause])] += 1
    counts = []
    for cause, those in found.items():
        in_units, places = {number for number, _ in those}, {(site.path, site.line) for _, site in those}
        counts.append(CauseCount(cause, len(in_units), len(places), costs_most[cause], seconds.get(cause)))
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
    groups = grouped(((row.conditions, row.torch), row) for row in rows)
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
        """True if it no longer runs, breaks at more places, runs more functions eager or recompiles more often."""
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
    """Compares units of the same name and conditions, of whatever versions, without those that have not run yet."""
    old, new = _that_ran(before), _that_ran(after)
    changes = []
    unchanged = 0
    for key in sorted(old.keys() & new.keys()):
        was, now = row_of(old[key]), row_of(new[key])
        causes = _changed_causes(old[key], new[key]) if was.status == now.status else ()
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


def _changed_causes(before: Surveyed, after: Surveyed) -> tuple[CauseChange, ...]:
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
