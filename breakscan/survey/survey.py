"""Runs a survey: what is missing in the store, stage by stage."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any

from breakscan.survey.engine import Engine
from breakscan.survey.manifest import SurveyManifest
from breakscan.survey.plan import PlannedUnit
from breakscan.survey.run_unit import Task, not_run
from breakscan.survey.store import Store
from breakscan.survey.units import StageResult, StageStatus, SurveyStage, has_work

_SKIPPED = StageStatus.SKIPPED.value


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
    again: Collection[str] = (),
    on_result: Callable[[Progressed], None] = lambda progressed: None,
) -> int:
    """Runs the stages of units that the store has no results of, those that ended at smaller limits, and those with a
    status of ``again``; each result is kept as it comes.  Stages that measure time run last, one after the other.
    Returns the number of the survey."""
    by_key = {one.key: one for one in units}
    number = store.begin(units, [stage.value for stage in manifest.stages])
    endings = store.endings(number)
    missing = {key: asked for key in by_key if (asked := _missing(key, endings.get(key, {}), manifest, store, again))}
    total = len(by_key) * len(manifest.stages)
    done = total - sum(map(len, missing.values()))

    def keep(key: str, result: StageResult) -> None:
        nonlocal done
        store.put(key, result)
        done += 1
        on_result(Progressed(by_key[key], result, done, total))

    for measuring in (False, True):
        tasks = []
        for key, asked in missing.items():
            stages = [stage for stage in asked if stage.measures_time is measuring]
            explained = _explained(key, store) if measuring and stages else {}
            idle = [stage for stage in stages if measuring and not has_work(stage, explained)]
            for stage in idle:
                keep(key, not_run(stage, StageStatus.SKIPPED))
            if len(stages) > len(idle):
                one, waiting = by_key[key], tuple(stage for stage in stages if stage not in idle)
                limits = (manifest.seconds, manifest.memory)
                tasks.append(Task(key, one.unit, one.folder, one.environment.executable, waiting, *limits))
        if tasks:
            # Closed at once, whatever happens here: until then the engine's processes run on.
            with closing(engine.run(tasks, alone=measuring)) as arriving:
                for key, result in arriving:
                    keep(key, result)
    store.end(number)
    return number


def _explained(key: str, store: Store) -> Mapping[str, Any]:
    """The facts of the stage ``explain`` of a unit."""
    result = store.results(key).get(SurveyStage.EXPLAIN.value)
    return result.facts if result is not None else {}


def _missing(
    key: str, ended: Mapping[str, StageResult], manifest: SurveyManifest, store: Store, again: Collection[str]
) -> tuple[SurveyStage, ...]:
    """The stages of a unit that have no result, or none that counts."""
    wanted = {stage for stage in manifest.stages if _counts_not(ended.get(stage.value), manifest, again)}
    skipped = {stage for stage in manifest.stages if (one := ended.get(stage.value)) and one.status == _SKIPPED}
    if SurveyStage.EXPLAIN in wanted:
        wanted |= skipped
    elif skipped:
        explained = _explained(key, store)
        wanted |= {stage for stage in skipped if has_work(stage, explained)}
    return tuple(stage for stage in manifest.stages if stage in wanted)


def _counts_not(ended: StageResult | None, manifest: SurveyManifest, again: Collection[str]) -> bool:
    """Return True for no result, and for one at a limit that is higher now."""
    if ended is None or ended.status in again:
        return True
    if ended.status == StageStatus.TIMEOUT.value:
        return manifest.seconds > ended.seconds
    is_at_limit = ended.status == StageStatus.MEMORY.value
    return is_at_limit and (manifest.memory is None or (ended.peak is not None and manifest.memory > ended.peak))
