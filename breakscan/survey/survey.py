"""Runs a survey: what is missing in the store, stage by stage, several tasks at a time."""

import importlib
import queue
import socket
import threading
from collections.abc import Callable, Collection, Generator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import closing
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

from breakscan.model.words import InputError
from breakscan.survey.manifest import PlannedUnit, StageResult, StageStatus, SurveyManifest, SurveyStage, has_work
from breakscan.survey.run_unit import Task, end_running, not_run, run_stage
from breakscan.survey.store import Store

Arriving = Generator[tuple[str, StageResult], None, None]  # by key of task; who closes it ends what runs


class EngineError(InputError):
    """An engine cannot be used, with the reason and the remedy."""


class LocalEngine:
    """Runs up to ``jobs`` tasks at the same time on this machine.  Those that need a GPU have one of ``gpus`` (their
    numbers) for themselves, and run next to the others."""

    def __init__(self, jobs: int, gpus: Sequence[int] = ()) -> None:
        self._jobs = jobs
        self._gpus = tuple(gpus)

    def run(self, tasks: Sequence[Task], *, alone: bool) -> Arriving:
        """Yield the results of tasks as they come.  ``alone`` runs one task at a time."""
        arrived: queue.SimpleQueue[tuple[str, StageResult] | BaseException | None] = queue.SimpleQueue()
        free: queue.SimpleQueue[int] = queue.SimpleQueue()
        for number in self._gpus:
            free.put(number)
        is_stopped = threading.Event()

        def work(task: Task) -> None:
            gpu = free.get() if task.needs_gpu else None
            try:
                for stage in task.stages:
                    if not is_stopped.is_set():
                        arrived.put((task.key, run_stage(stage, replace(task, device=gpu))))
            except BaseException as error:
                arrived.put(error)
            finally:
                if gpu is not None:
                    free.put(gpu)
                arrived.put(None)

        on_gpu = [one for one in tasks if one.needs_gpu]
        jobs = 1 if alone else self._jobs
        workers = len(self._gpus) if on_gpu and not alone else 0
        with ThreadPoolExecutor(max(1, jobs - workers)) as pool, ThreadPoolExecutor(workers or 1) as pool_of_gpus:
            running = [(pool_of_gpus if workers and one.needs_gpu else pool).submit(work, one) for one in tasks]
            left = len(running)
            try:
                while left:
                    got = arrived.get()
                    if isinstance(got, BaseException):
                        raise got
                    if got is None:
                        left -= 1
                    else:
                        yield got
            finally:
                is_stopped.set()
                for one in running:
                    one.cancel()
                while wait(running, timeout=_EVERY).not_done:
                    end_running()

    def close(self) -> None:
        """Does nothing: what runs ends with its task."""


_PATIENCE = 10.0  # seconds to wait for a node to answer
_EVERY = 0.2  # seconds between two looks for results: a look costs the more, the more tasks wait
AHEAD = 1000  # tasks that Ray knows of, beyond two for each CPU
RETRIES = 3  # new starts of a task whose node was lost


class RayEngine:
    """Runs tasks on the cluster at an address (``auto``: the one that runs on this machine); without one, Ray starts a
    cluster of this machine.  Ray decides where a task runs, by the CPUs, GPUs and memory that it asks for.  Raises
    EngineError where there is no Ray, or no such cluster.  All nodes have the same paths."""

    def __init__(self, address: str | None = None) -> None:
        try:
            self._ray: Any = importlib.import_module("ray")
        except ImportError as error:
            raise EngineError("the engine ray needs Ray on all nodes: pip install 'ray[default]'") from error
        if address is not None and ":" in address:
            _require_reachable(address)
        try:
            self._ray.init(address=address or "local", log_to_driver=False, logging_level="ERROR")
        except (ConnectionError, ValueError, RuntimeError) as error:
            raise EngineError(f"no Ray cluster at {address}: {error}") from error

    def run(self, tasks: Sequence[Task], *, alone: bool) -> Arriving:
        """See :meth:`.LocalEngine.run`.  The results of a task come together, when its last stage has ended."""
        remote = self._ray.remote(max_retries=RETRIES)(_results)
        whole = min(node["Resources"].get("CPU", 1) for node in self._ray.nodes() if node["Alive"]) if alone else 1
        waiting: dict[Any, Task] = {}
        coming = iter(tasks)
        try:
            while True:
                # The cluster may grow meanwhile.
                known = AHEAD + 2 * int(self._ray.cluster_resources().get("CPU", 0))
                for one in islice(coming, max(0, known - len(waiting))):
                    needs = {"num_cpus": whole, "num_gpus": int(one.needs_gpu)}
                    if one.memory is not None:
                        needs["memory"] = one.memory
                    waiting[remote.options(**needs).remote(one)] = one
                if not waiting:
                    break
                all_ended, _ = self._ray.wait(list(waiting), num_returns=len(waiting), timeout=_EVERY)
                for ended in all_ended:
                    one = waiting.pop(ended)
                    for result in self._results(ended, one):
                        yield one.key, result
        finally:
            for task in waiting:
                self._ray.cancel(task, force=True)

    def close(self) -> None:
        self._ray.shutdown()

    def _results(self, ended: Any, task: Task) -> list[StageResult]:
        try:
            return list(self._ray.get(ended))
        except self._ray.exceptions.RayError as error:
            status = StageStatus.CRASHED.value
            return [StageResult(stage.value, status, 0.0, None, said=str(error)) for stage in task.stages]


def _require_reachable(address: str) -> None:
    """Raises EngineError where nobody listens: Ray would try for minutes."""
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host.rpartition("/")[2], int(port)), timeout=_PATIENCE).close()
    except (OSError, ValueError) as error:
        raise EngineError(f"no Ray cluster at {address}: {error}") from error


def _results(task: Task) -> list[StageResult]:
    return [run_stage(stage, task) for stage in task.stages]


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
    engine: LocalEngine | RayEngine,
    *,
    again: Collection[str] = (),
    on_result: Callable[[Progressed], None] = lambda progressed: None,
) -> int:
    """Runs the stages of units that the store has no results of, those that ended at smaller limits, and those with a
    status of ``again``; each result is kept as it comes.  Those that measure time run last, alone."""
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
