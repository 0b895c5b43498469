"""Runs work on many files in several processes, also where a process dies or none can be started."""

import gc
import multiprocessing
import os
import signal
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from itertools import chain
from pathlib import Path
from threading import Thread
from typing import Any, TypeVar

Task = TypeVar("Task")
Result = TypeVar("Result")

LAST_SECONDS = 2.0
"""The time that a pool has to end its processes."""


def in_processes(
    start: Callable[[], Callable[[Task], Result]],
    batches: Sequence[Sequence[Task]],
    workers: int,
    *,
    here: Callable[[Task], Result],
    died: Callable[[Task], Result],
) -> Iterator[Result]:
    """The result of each task, in their order.  ``start`` is called in each process and returns the function that does
    the work.  After a process has died, each task that is left gets one of its own, and ``died`` gives the result for a
    task whose process dies again.  ``here`` works in this process, where the system has no room for others."""
    done = 0
    try:
        for results in _results(_pool(start, workers), batches):
            yield from results
            done += 1
    except BrokenProcessPool:
        for task in chain.from_iterable(batches[done:]):
            with _pool(start, 1) as pool:
                try:
                    result = pool.submit(_do, [task]).result()[0]
                except BrokenProcessPool:
                    result = died(task)
            yield result
    except OSError:  # the system has no room for more processes or their pipes
        yield from map(here, chain.from_iterable(batches[done:]))


def _results(pool: ProcessPoolExecutor, batches: Iterable[Sequence[Task]]) -> Iterator[list[Any]]:
    """The results of batches, in their order; whatever interrupts ends the pool and its processes at once."""
    try:
        yield from pool.map(_do, batches)
    except BaseException:
        # An orderly shutdown would wait for workers that may never hear of it (Ctrl-C, torn queues).
        manager: Thread | None = getattr(pool, "_executor_manager_thread", None)
        pool.shutdown(wait=False, cancel_futures=True)
        for process in multiprocessing.active_children():
            process.terminate()
        # Python's own shutdown wakes it, and prints a traceback where it is just closing what it is woken by.
        if manager is not None:
            manager.join(LAST_SECONDS)
        raise
    pool.shutdown()


def _pool(start: Callable[[], Callable[[Any], Any]], workers: int) -> ProcessPoolExecutor:
    return ProcessPoolExecutor(workers, initializer=_start, initargs=(start, str(Path.cwd())))


_work: Callable[[Any], Any] | None = None
"""The function of a worker process."""


def _start(start: Callable[[], Callable[[Any], Any]], folder: str) -> None:
    global _work
    os.chdir(folder)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent handles Ctrl-C
    gc.disable()
    _work = start()


def _do(batch: Sequence[Any]) -> list[Any]:
    assert _work is not None
    return list(map(_work, batch))
