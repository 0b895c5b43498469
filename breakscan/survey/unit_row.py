"""A unit of a survey as a row of a table."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

from breakscan.survey.store import Surveyed
from breakscan.survey.units import StageResult, StageStatus, SurveyStage

WAITING = "waiting"
"""The status of a unit that has not run yet."""


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
class UnitRow:
    """A unit in a table; its results are kept under ``key``.  Counts are None where ``explain`` did not succeed;
    ``breaks`` are places, ``cost`` the seconds of the calls that breaks and eager functions took, ``costliest`` what
    took most of them, ``causes`` and ``files`` why and where it breaks or runs eager; ``proved`` are the changes that
    ``verify`` accepts."""

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
    said: str

    @property
    def counts(self) -> tuple[int | None, int | None, int | None]:
        """Breaks, functions that run eager, and recompiles."""
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
    """The row of a unit."""
    explained = one.results.get(SurveyStage.EXPLAIN.value)
    ok = explained is not None and explained.status == StageStatus.OK.value
    facts = explained.facts if explained is not None and ok else {}
    proofs = _facts(one.results, SurveyStage.VERIFY).get("proofs")
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
        speed=_speed(_facts(one.results, SurveyStage.BENCH)),
        said=explained.said if explained and not ok else "",
    )


def sites_of(one: Surveyed, *, consequences: bool = False) -> Iterator[SurveyedSite]:
    """Where a unit breaks, runs eager and recompiles.  What runs eager because of a break is part of that break, and
    left out without ``consequences``."""
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
    """Return the seconds that each cause cost the calls of a unit, or, if ``compiling``, the compiler, where that is
    known."""
    costs: dict[CauseKey, float] = defaultdict(float)
    for site in sites:
        if site.seconds is not None and (site.cause.kind is CauseKind.RECOMPILE) is compiling:
            costs[site.cause] += site.seconds
    return costs


def _facts(results: Mapping[str, StageResult], stage: SurveyStage) -> Mapping[str, Any]:
    result = results.get(stage.value)
    return result.facts if result is not None else {}


def _speed(facts: Mapping[str, Any]) -> float | None:
    """Return the speed of the best way, as a multiple of eager."""
    ratios = [way["ratio"]["median"] for way in facts.get("ways", ()) if way["ratio"]]
    return max(ratios, default=None)
