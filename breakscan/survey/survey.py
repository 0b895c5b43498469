"""Runs a survey: what is missing in the store, stage by stage."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any

from breakscan.survey.engine import Engine
from breakscan.survey.manifest import SurveyManifest
from breakscan.survey.plan import PlannedUnit
from breakscan.survey.run_unit import Task, not_run
from breakscan.survey.store import Store
from breakscan.survey.units import StageResult, StageStatus, SurveyStage, has_work


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
    """Runs the stages of units that the store has no results of, those that ended at smaller limits, and those with a
    status of ``again``; each result is kept as it comes.  Stages that measure time run last, one after the other.
    Returns the number of the survey."""
    by_key = {one.key: one for one in units}
    number = store.begin(units, [stage.value for stage in manifest.stages])
    endings = store.endings(number)
    wanted = _Wanted(manifest, store, frozenset(again))
    missing = {key: asked for key in by_key if (asked := wanted.of(key, endings.get(key, {})))}
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
            explained = wanted.explained(key) if measuring and stages else {}
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


class _Wanted:
    """Selects the stages of a unit to run."""

    def __init__(self, manifest: SurveyManifest, store: Store, again: frozenset[str]) -> None:
        self._manifest = manifest
        self._store = store
        self._again = again

    def explained(self, key: str) -> Mapping[str, Any]:
        """The facts of the stage ``explain`` of a unit, from the store."""
        result = self._store.results(key).get(SurveyStage.EXPLAIN.value)
        return result.facts if result is not None else {}

    def of(self, key: str, ended: Mapping[str, StageResult]) -> tuple[SurveyStage, ...]:
        """Those that have no result, or none that counts."""
        stages = self._manifest.stages
        wanted = {stage for stage in stages if self._counts_not(ended.get(stage.value))}
        skipped = {stage for stage in stages if self._is_skipped(ended.get(stage.value))}
        if SurveyStage.EXPLAIN in wanted:
            wanted |= skipped
        elif skipped:
            explained = self.explained(key)
            wanted |= {stage for stage in skipped if has_work(stage, explained)}
        return tuple(stage for stage in stages if stage in wanted)

    def _counts_not(self, ended: StageResult | None) -> bool:
        """Return True for no result, and for one at a limit that is higher now."""
        if ended is None or ended.status in self._again:
            return True
        if ended.status == StageStatus.TIMEOUT.value:
            return self._manifest.seconds > ended.seconds
        if ended.status == StageStatus.MEMORY.value:
            allowed = self._manifest.memory
            return allowed is None or (ended.peak is not None and allowed > ended.peak)
        return False

    def _is_skipped(self, ended: StageResult | None) -> bool:
        return ended is not None and ended.status == StageStatus.SKIPPED.value
