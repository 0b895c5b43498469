"""Runs tasks, several at a time."""

from __future__ import annotations

import importlib
import queue
import socket
import threading
from collections.abc import Generator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import replace
from itertools import islice
from typing import Any, Protocol

from breakscan.model.words import InputError
from breakscan.survey.limited_process import end_running
from breakscan.survey.run_unit import Task, run_stage
from breakscan.survey.units import StageResult, StageStatus

Arriving = Generator[tuple[str, StageResult], None, None]
"""Results, each with the key of its task; whoever closes it ends what runs."""


class EngineError(InputError):
    """An engine cannot be used, with the reason and the remedy."""


class Engine(Protocol):
    """Something that runs tasks."""

    def run(self, tasks: Sequence[Task], *, alone: bool) -> Arriving:
        """Yield the results of tasks as they come.  ``alone`` runs one task at a time."""

    def close(self) -> None:
        """Gives back what the engine holds."""


class LocalEngine:
    """Runs up to ``jobs`` tasks at the same time on this machine.  Those that need a GPU have one of ``gpus`` (their
    numbers) for themselves, and run next to the others."""

    def __init__(self, jobs: int, gpus: Sequence[int] = ()) -> None:
        self._jobs = jobs
        self._gpus = tuple(gpus)

    def run(self, tasks: Sequence[Task], *, alone: bool) -> Arriving:
        """See :meth:`Engine.run`."""
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
        """See :meth:`Engine.close`."""


_PATIENCE = 10.0
"""Seconds to wait for a node to answer."""
_EVERY = 0.2
"""Seconds between two looks for results: a look costs the more, the more tasks wait."""
AHEAD = 1000
"""Tasks that Ray knows of, beyond two for each CPU."""
RETRIES = 3
"""New starts of a task whose node was lost."""


class RayEngine:
    """Runs tasks on the cluster at an address (``auto``: the one that runs on this machine); without one, Ray starts a
    cluster of this machine.  Ray decides where a task runs, by the CPUs, GPUs and memory that it asks for.  Raises
    EngineError where there is no Ray, or no such cluster.

    Folders of programs and interpreters have the same paths on all nodes.
    """

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
        """See :meth:`.Engine.run`.  The results of a task come together, when its last stage has ended."""
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
        """Leaves the cluster; one that this engine started ends."""
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
