"""What a survey asks an engine for, and what it counts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from breakscan.survey.engine import KeyedTask
from breakscan.survey.manifest import SurveyManifest
from breakscan.survey.plan import PlannedUnit
from breakscan.survey.stage_results import StageResult
from breakscan.survey.store import Store
from breakscan.survey.survey import Progressed, run_survey
from breakscan.survey.units import Environment, SurveyStage, Unit

UNITS = [PlannedUnit(Unit(name, command=("a.py",)), Environment("3.11.7", "python", {})) for name in ("one", "two")]


class Kept:
    """An engine that runs nothing, and keeps what it was asked for."""

    def __init__(self) -> None:
        self.asked: list[tuple[bool, list[tuple[str, ...]]]] = []

    def run(self, tasks: Sequence[KeyedTask], *, alone: bool) -> Iterator[tuple[str, StageResult]]:
        self.asked.append((alone, [tuple(stage.value for stage in one.task.stages) for one in tasks]))
        for one in tasks:
            for stage in one.task.stages:
                yield one.key, StageResult(stage.value, "ok", 1.0, None)

    def close(self) -> None:
        pass


def test_what_measures_time_runs_last_and_alone_and_nothing_twice(tmp_path: Path) -> None:
    whole = SurveyManifest(tmp_path, (), (), (SurveyStage.EXPLAIN, SurveyStage.CHECK, SurveyStage.BENCH))
    heard: list[Progressed] = []
    with Store(tmp_path / "s.db") as store:
        engine = Kept()
        run_survey(whole, UNITS, store, engine, on_result=heard.append)
        assert engine.asked == [(False, [("explain", "check")] * 2), (True, [("bench",)] * 2)]
        assert [(one.done, one.total) for one in heard] == [(number, 6) for number in range(1, 7)]
        part = SurveyManifest(tmp_path, (), (), (SurveyStage.EXPLAIN, SurveyStage.FIX))
        heard.clear()
        run_survey(part, UNITS, store, engine, on_result=heard.append)
        assert engine.asked[2:] == [(False, [("fix",)] * 2)]
        assert [(one.done, one.total) for one in heard] == [(3, 4), (4, 4)]
