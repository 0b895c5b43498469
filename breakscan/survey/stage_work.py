"""Which stages of a unit have something to do, by what ``explain`` saw."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from breakscan.survey.units import SurveyStage


@dataclass(frozen=True, slots=True)
class Explained:
    """What ``explain`` saw: the ``files`` that were compiled, and whether anything in them broke the graph, ran eager
    or compiled again (``has_causes``)."""

    files: tuple[str, ...] = ()
    has_causes: bool = False

    @classmethod
    def of(cls, facts: Mapping[str, Any]) -> Explained:
        """From the facts of the stage; of one that gave none, nothing."""
        causes = any(facts.get(name) for name in ("breaks", "eager", "recompiles"))
        return cls(tuple(facts.get("files", ())), causes)


NOTHING = Explained()


def has_work(stage: SurveyStage, explained: Explained) -> bool:
    """Whether a stage can find anything: all but ``explain`` need compiled files, and rewrites and their proofs
    something to take away.  ``check`` also finds what did not run."""
    if stage is SurveyStage.EXPLAIN:
        return True
    if stage in (SurveyStage.FIX, SurveyStage.VERIFY):
        return bool(explained.files) and explained.has_causes
    return bool(explained.files)
