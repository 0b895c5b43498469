"""Runs a survey: what is missing in the store, stage by stage."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from breakscan.survey.engine import Engine, KeyedTask
from breakscan.survey.manifest import SurveyManifest
from breakscan.survey.plan import PlannedUnit
from breakscan.survey.run_unit import Task
from breakscan.survey.stage_results import StageResult
from breakscan.survey.store import Store
from breakscan.survey.units import SurveyStage


@dataclass(frozen=True, slots=True)
class Progressed:
    """A result that has come: ``done`` of ``total`` are there, those of earlier surveys included."""

    planned: PlannedUnit
    result: StageResult
    done: int
    total: int


def run_survey(
    manifest: SurveyManifest,
    units: Sequence[PlannedUnit],
    store: Store,
    engine: Engine,
    *,
    again: Iterable[str] = (),
    on_result: Callable[[Progressed], None] = lambda progressed: None,
) -> int:
    """Runs the stages of units that the store has no results of, and those with a status of ``again``; each result is
    kept as it comes.  Stages that measure time run last, one after the other.  Returns the number of the survey."""
    by_key = {one.key: one for one in units}
    number = store.begin(units, [stage.value for stage in manifest.stages])
    results = store.done(by_key, again)
    total = len(by_key) * len(manifest.stages)
    for measuring in (False, True):
        stages = [stage for stage in manifest.stages if stage.measures_time is measuring]
        tasks = [
            KeyedTask(key, task)
            for key, one in by_key.items()
            if (task := _task(manifest, one, stages, results.get(key, {}))) is not None
        ]
        if not tasks:
            continue
        for key, result in engine.run(tasks, alone=measuring):
            store.put(key, result)
            results.setdefault(key, {})[result.stage] = result
            done = sum(stage.value in found for found in results.values() for stage in manifest.stages)
            on_result(Progressed(by_key[key], result, done, total))
    store.end(number)
    return number


def _task(
    manifest: SurveyManifest, one: PlannedUnit, stages: Iterable[SurveyStage], found: Mapping[str, StageResult]
) -> Task | None:
    """The stages of a unit that have no result yet; None where all have."""
    wanted = tuple(stage for stage in stages if stage.value not in found)
    if not wanted:
        return None
    explained = found.get(SurveyStage.EXPLAIN.value)
    files = tuple(explained.facts.get("files", ())) if explained else ()
    executable = one.environment.executable
    return Task(one.unit, executable, wanted, manifest.seconds, manifest.memory, files)
