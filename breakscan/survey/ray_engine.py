"""Runs tasks on a Ray cluster."""

from __future__ import annotations

import importlib
import socket
from collections.abc import Sequence
from itertools import islice
from typing import Any

from breakscan.survey.engine import Arriving, EngineError
from breakscan.survey.run_unit import Task, UnitProcesses, line_of, result_of
from breakscan.survey.units import StageResult, StageStatus

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
            return [result_of(line) for line in self._ray.get(ended)]
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


def _results(task: Task) -> list[str]:
    """In a process of its own: Ray may end this one at any moment, and what the unit started must end with it."""
    return [line_of(result) for result in UnitProcesses().results(task)]
