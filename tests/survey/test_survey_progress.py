"""What a survey asks an engine for, and what it counts."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from breakscan.survey.manifest import Environment, PlannedUnit, StageResult, SurveyManifest, SurveyStage, Unit
from breakscan.survey.run_unit import Task
from breakscan.survey.store import Store
from breakscan.survey.survey import Arriving, Progressed, run_survey

BROKEN: dict[str, Any] = {"graphs": 2, "breaks": [{}], "eager": [], "recompiles": []}
WHOLE = {**BROKEN, "breaks": []}
ALL = (SurveyStage.EXPLAIN, SurveyStage.VERIFY, SurveyStage.BENCH)


class Kept:
    """An engine that runs nothing, and keeps what it was asked for.  ``explain`` gives ``facts``."""

    def __init__(self, facts: dict[str, Any] = BROKEN, ended: StageResult | None = None) -> None:
        self.asked: list[tuple[bool, list[tuple[str, ...]]]] = []
        self.facts = facts
        self.ended = ended or StageResult("explain", "ok", 1.0, None)

    def run(self, tasks: Sequence[Task], *, alone: bool) -> Arriving:
        self.asked.append((alone, [tuple(stage.value for stage in one.stages) for one in tasks]))
        for one in tasks:
            for stage in one.stages:
                if stage is SurveyStage.EXPLAIN:
                    yield one.key, replace(self.ended, facts=self.facts)
                else:
                    yield one.key, StageResult(stage.value, "ok", 1.0, None)

    def close(self) -> None:
        pass


@pytest.fixture
def units(tmp_path: Path) -> list[PlannedUnit]:
    (tmp_path / "a.py").touch()
    environment = Environment("3.11.7", "python", {})
    return [PlannedUnit(Unit(name, command=("a.py",)), environment, str(tmp_path)) for name in ("one", "two")]


@pytest.fixture
def store(tmp_path: Path) -> Any:
    with Store(tmp_path / "s.db") as store:
        yield store


def test_what_measures_time_runs_last_and_alone_and_nothing_twice(
    tmp_path: Path, units: list[PlannedUnit], store: Store
) -> None:
    whole = SurveyManifest(tmp_path, (), (), (SurveyStage.EXPLAIN, SurveyStage.BENCH))
    heard: list[Progressed] = []
    engine = Kept()
    run_survey(whole, units, store, engine, on_result=heard.append)
    assert engine.asked == [(False, [("explain",)] * 2), (True, [("bench",)] * 2)]
    assert [(one.done, one.total) for one in heard] == [(number, 4) for number in range(1, 5)]
    part = SurveyManifest(tmp_path, (), (), (SurveyStage.EXPLAIN, SurveyStage.VERIFY))
    heard.clear()
    run_survey(part, units, store, engine, on_result=heard.append)
    assert engine.asked[2:] == [(True, [("verify",)] * 2)]
    assert [(one.done, one.total) for one in heard] == [(3, 4), (4, 4)]


def statuses(store: Store, unit: PlannedUnit) -> dict[str, str]:
    return {stage: one.status for stage, one in store.results(unit.key).items()}


def test_what_breaks_nowhere_needs_no_rewrite_and_no_proof(
    tmp_path: Path, units: list[PlannedUnit], store: Store
) -> None:
    engine = Kept(WHOLE)
    run_survey(SurveyManifest(tmp_path, (), (), ALL), units[:1], store, engine)
    assert engine.asked == [(False, [("explain",)]), (True, [("bench",)])]
    assert statuses(store, units[0])["verify"] == "skipped"
    run_survey(SurveyManifest(tmp_path, (), (), ALL), units[:1], store, engine)
    assert len(engine.asked) == 2


@pytest.mark.parametrize("cause", ["breaks", "eager", "recompiles"])
def test_each_cause_needs_all_stages(cause: str, tmp_path: Path, units: list[PlannedUnit], store: Store) -> None:
    engine = Kept({**WHOLE, cause: [{}]})
    run_survey(SurveyManifest(tmp_path, (), (), ALL), units[:1], store, engine)
    assert engine.asked[1:] == [(True, [("verify", "bench")])]


@pytest.mark.parametrize(
    ("ended", "seconds", "memory", "runs"),
    [
        (StageResult("explain", "timeout", 10.3, 100), 10, None, False),
        (StageResult("explain", "timeout", 10.3, 100), 5, None, False),
        (StageResult("explain", "timeout", 10.3, 100), 20, None, True),
        (StageResult("explain", "memory", 1.0, 1100), 10, 1000, False),
        (StageResult("explain", "memory", 1.0, 1100), 10, 1100, False),
        (StageResult("explain", "memory", 1.0, 1100), 10, 2000, True),
        (StageResult("explain", "memory", 1.0, 1100), 10, None, True),
        (StageResult("explain", "failed", 1.0, 100), 20, 2000, False),
    ],
)
def test_what_went_over_smaller_limits_runs_again(
    ended: StageResult, seconds: float, memory: int | None, runs: bool,
    tmp_path: Path, units: list[PlannedUnit], store: Store,
) -> None:  # fmt: skip
    asked = SurveyManifest(tmp_path, (), (), ALL, seconds=10)
    run_survey(asked, units[:1], store, Kept({}, ended))
    engine = Kept()
    run_survey(replace(asked, seconds=seconds, memory=memory), units[:1], store, engine)
    # With the stages that had nothing to look at.
    again = [(False, [("explain",)]), (True, [("verify", "bench")])] if runs else []
    assert [one for one in engine.asked if one[0]] == again[1:]
    assert bool(engine.asked) is runs


def test_what_was_skipped_runs_where_a_kill_came_before(tmp_path: Path, units: list[PlannedUnit], store: Store) -> None:
    asked = SurveyManifest(tmp_path, (), (), (SurveyStage.EXPLAIN, SurveyStage.BENCH))
    run_survey(asked, units[:1], store, Kept())
    store.put(units[0].key, StageResult("bench", "skipped", 0.0, None))  # of an explain that had failed
    engine = Kept()
    run_survey(asked, units[:1], store, engine)
    assert engine.asked == [(True, [("bench",)])]


class Interrupted(Exception):
    pass


def test_an_engine_is_closed_at_once_when_the_survey_is_interrupted(
    tmp_path: Path, units: list[PlannedUnit], store: Store
) -> None:
    closed = []

    class Closed(Kept):
        def run(self, tasks: Sequence[Task], *, alone: bool) -> Arriving:
            try:
                yield from super().run(tasks, alone=alone)
            finally:
                closed.append(True)

    def interrupt(_: Progressed) -> None:
        raise Interrupted

    try:
        run_survey(SurveyManifest(tmp_path, (), (), ALL), units, store, Closed(), on_result=interrupt)
    except Interrupted:
        # While the exception is handled, it holds the frames, and with them the engine's generator.
        assert closed == [True]
