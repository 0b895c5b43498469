"""Runs tasks on a Ray cluster."""

from __future__ import annotations

import importlib
import socket
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any

from breakscan.survey.engine import EngineError, KeyedTask
from breakscan.survey.run_unit import Task, run_stages
from breakscan.survey.stage_results import StageResult, StageStatus

_PATIENCE = 10.0
"""Seconds to wait for a node to answer."""
RETRIES = 3
"""How often a task is begun again because the node that ran it was lost."""


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

    def run(self, tasks: Sequence[KeyedTask], *, alone: bool) -> Iterator[tuple[str, StageResult]]:
        """See :meth:`.Engine.run`.  The results of a task come together, when its last stage has ended."""
        remote = self._ray.remote(max_retries=RETRIES)(_results)
        whole = min(node["Resources"].get("CPU", 1) for node in self._ray.nodes() if node["Alive"]) if alone else 1
        waiting = {}
        for one in tasks:
            needs = {"num_cpus": whole, "num_gpus": int(one.task.unit.device.startswith("cuda"))}
            if one.task.memory is not None:
                needs["memory"] = one.task.memory
            waiting[remote.options(**needs).remote(one.task)] = one
        try:
            while waiting:
                (ended, *_), _ = self._ray.wait(list(waiting), num_returns=1)
                one = waiting.pop(ended)
                for result in self._results(ended, one.task):
                    yield one.key, result
        finally:
            for task in waiting:
                self._ray.cancel(task, force=True)

    def close(self) -> None:
        """Leaves the cluster; one that this engine started ends."""
        self._ray.shutdown()

    def _results(self, ended: Any, task: Task) -> list[StageResult]:
        try:
            return [StageResult(**one) for one in self._ray.get(ended)]
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


def _results(task: Task) -> list[dict[str, Any]]:
    return [asdict(result) for result in run_stages(task)]
