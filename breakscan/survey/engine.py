"""Runs tasks: where, and how many side by side."""

from __future__ import annotations

import contextlib
import json
import queue
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Protocol

from breakscan.dataclass_json import encode
from breakscan.survey.run_unit import Task
from breakscan.survey.stage_results import StageResult, StageStatus


@dataclass(frozen=True, slots=True)
class KeyedTask:
    """A task with the key that its results are kept under."""

    key: str
    task: Task


class EngineError(Exception):
    """An engine cannot be used.  Says why, and what to do."""


class Engine(Protocol):
    """Something that runs tasks."""

    def run(self, tasks: Sequence[KeyedTask], *, alone: bool) -> Iterator[tuple[str, StageResult]]:
        """The results of tasks, each with the key of its task, as they come.  ``alone``: nothing runs beside a task."""

    def close(self) -> None:
        """Gives back what the engine holds."""


class LocalEngine:
    """Runs up to ``jobs`` tasks side by side on this machine, each in processes of its own.  Those that need a GPU have
    one of ``gpus`` (their numbers) for themselves."""

    def __init__(self, jobs: int, gpus: Sequence[int] = ()) -> None:
        self._jobs = jobs
        self._gpus: queue.SimpleQueue[int] = queue.SimpleQueue()
        for number in gpus:
            self._gpus.put(number)
        self._running: set[subprocess.Popen[str]] = set()
        self._stopped = threading.Event()

    def run(self, tasks: Sequence[KeyedTask], *, alone: bool) -> Iterator[tuple[str, StageResult]]:
        """See :meth:`Engine.run`."""
        arrived: queue.SimpleQueue[tuple[str, StageResult] | BaseException | None] = queue.SimpleQueue()

        def work(one: KeyedTask) -> None:
            try:
                if not self._stopped.is_set():
                    for result in self._results(one.task):
                        arrived.put((one.key, result))
            except BaseException as error:
                arrived.put(error)
            arrived.put(None)

        left = len(tasks)
        with ThreadPoolExecutor(1 if alone else self._jobs) as pool:
            try:
                for one in tasks:
                    pool.submit(work, one)
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
                    self._stop()

    def close(self) -> None:
        """See :meth:`Engine.close`."""

    def _results(self, task: Task) -> Iterator[StageResult]:
        needs_gpu = task.unit.device.startswith("cuda")
        device = self._gpus.get() if needs_gpu else None
        try:
            yield from self._in_process(replace(task, device=device))
        finally:
            if device is not None:
                self._gpus.put(device)

    def _in_process(self, task: Task) -> Iterator[StageResult]:
        """Standard input stays open while the process works: it ends when this process does."""
        process = subprocess.Popen(
            [sys.executable, "-m", "breakscan.survey.run_unit"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            start_new_session=True,
        )
        self._running.add(process)
        assert process.stdin is not None
        assert process.stdout is not None
        waiting = list(task.stages)
        try:
            with contextlib.suppress(BrokenPipeError):
                process.stdin.write(json.dumps(encode(task)) + "\n")
                process.stdin.flush()
            for line in process.stdout:
                result = StageResult(**json.loads(line))
                waiting = [stage for stage in waiting if stage.value != result.stage]
                yield result
            process.wait()
        finally:
            with contextlib.suppress(OSError):
                process.stdin.close()
            process.stdout.close()
            process.wait()
            self._running.discard(process)
        if not self._stopped.is_set():
            # Such as one that the system ended for want of memory.
            for stage in waiting:
                yield StageResult(stage.value, StageStatus.CRASHED.value, 0.0, None, host=socket.gethostname())

    def _stop(self) -> None:
        self._stopped.set()
        for process in list(self._running):
            with contextlib.suppress(OSError):
                assert process.stdin is not None
                process.stdin.close()
