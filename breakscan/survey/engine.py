"""Runs tasks, several at a time."""

from __future__ import annotations

import queue
import threading
from collections import deque
from collections.abc import Generator, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from typing import Protocol

from breakscan.model.errors import InputError
from breakscan.survey.run_unit import Task, UnitProcesses
from breakscan.survey.units import StageResult

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
    """Runs up to ``jobs`` tasks at the same time on this machine, each in its own processes.  Those that need a GPU
    have one of ``gpus`` (their numbers) for themselves; while none is free, others run."""

    def __init__(self, jobs: int, gpus: Sequence[int] = ()) -> None:
        self._jobs = jobs
        self._gpus = tuple(gpus)
        self._processes = UnitProcesses()

    def run(self, tasks: Sequence[Task], *, alone: bool) -> Arriving:
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
                        for result in self._processes.results(replace(one, device=gpu)):
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


class WaitingTasks:
    """Hands tasks out: one that needs a GPU when a GPU is free, and meanwhile those that need none."""

    def __init__(self, tasks: Sequence[Task], gpus: Sequence[int]) -> None:
        self._changed = threading.Condition()
        self._gpus = list(gpus)
        self._on_gpu = deque(one for one in tasks if one.needs_gpu)
        self._elsewhere = deque(one for one in tasks if not one.needs_gpu)

    def none_left(self) -> None:
        """Hand out no more tasks."""
        with self._changed:
            self._on_gpu.clear()
            self._elsewhere.clear()
            self._changed.notify_all()

    @contextmanager
    def next(self) -> Iterator[tuple[Task, int | None] | None]:
        """The next task with its GPU, which it has until the end of the context; None when no more wait."""
        with self._changed:
            while self._on_gpu and not self._gpus and not self._elsewhere:
                self._changed.wait()
            gpu = self._gpus.pop(0) if self._on_gpu and self._gpus else None
            waiting = self._elsewhere if gpu is None else self._on_gpu
            task = waiting.popleft() if waiting else None
        try:
            yield None if task is None else (task, gpu)
        finally:
            if gpu is not None:
                with self._changed:
                    self._gpus.append(gpu)
                    self._changed.notify_all()
