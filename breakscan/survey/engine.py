"""Runs tasks: where, and how many side by side."""

from __future__ import annotations

import queue
from collections.abc import Generator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Protocol

from breakscan.survey.keyed_tasks import KeyedTask
from breakscan.survey.stage_results import StageResult
from breakscan.survey.unit_process import UnitProcesses
from breakscan.survey.waiting_tasks import WaitingTasks

Arriving = Generator[tuple[str, StageResult], None, None]
"""Results, each with the key of its task; whoever closes it ends what runs."""


class EngineError(Exception):
    """An engine cannot be used.  Says why, and what to do."""


class Engine(Protocol):
    """Something that runs tasks."""

    def run(self, tasks: Sequence[KeyedTask], *, alone: bool) -> Arriving:
        """The results of tasks as they come.  ``alone``: nothing runs beside a task."""

    def close(self) -> None:
        """Gives back what the engine holds."""


class LocalEngine:
    """Runs up to ``jobs`` tasks side by side on this machine, each in processes of its own.  Those that need a GPU have
    one of ``gpus`` (their numbers) for themselves; while none is free, others run."""

    def __init__(self, jobs: int, gpus: Sequence[int] = ()) -> None:
        self._jobs = jobs
        self._gpus = tuple(gpus)
        self._processes = UnitProcesses()

    def run(self, tasks: Sequence[KeyedTask], *, alone: bool) -> Arriving:
        """See :meth:`Engine.run`."""
        arrived: queue.SimpleQueue[tuple[str, StageResult] | BaseException | None] = queue.SimpleQueue()
        waiting = WaitingTasks(tasks, self._gpus)

        def work() -> None:
            try:
                while True:
                    with waiting.next() as found:
                        if found is None:
                            break
                        one, gpu = found
                        for result in self._processes.results(replace(one.task, device=gpu)):
                            arrived.put((one.key, result))
            except BaseException as error:
                arrived.put(error)
            arrived.put(None)

        left = jobs = 1 if alone else min(self._jobs, len(tasks))
        with ThreadPoolExecutor(jobs) as pool:
            try:
                for _ in range(jobs):
                    pool.submit(work)
                while left:
                    got = arrived.get()
                    if isinstance(got, BaseException):
                        raise got
                    if got is None:
                        left -= 1
                    else:
                        yield got
            finally:
                if left:
                    waiting.none_left()
                    self._processes.stop()

    def close(self) -> None:
        """See :meth:`Engine.close`."""
