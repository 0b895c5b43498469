"""Checks many files in several processes."""

from __future__ import annotations

import gc
import multiprocessing
import os
import signal
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import replace
from pathlib import Path
from threading import Thread
from typing import TypeVar

from breakscan.check.pipeline.checker import Checker
from breakscan.check.pipeline.results import FileResult
from breakscan.model.findings import SourceError
from breakscan.rulebook.config import FileSettings
from breakscan.source.paths import display_path

Task = TypeVar("Task")
Result = TypeVar("Result")

LAST_SECONDS = 2.0
"""For a pool of processes to end, once they are asked to."""


def check_in_processes(batches: Sequence[Sequence[Path]], checker: Checker, workers: int) -> Iterator[FileResult]:
    """The result of each file, in some order; what processes could not do, ``checker`` does."""
    done = 0
    try:
        for results in in_processes(_pool(checker.settings, workers), _check_batch, batches):
            yield from results
            done += 1
    except (BrokenProcessPool, OSError) as error:
        left = [path for batch in batches[done:] for path in batch]
        if isinstance(error, BrokenProcessPool):
            for path in left:
                yield _check_apart(path, checker.settings)
        else:  # the system has no room for more processes or their pipes
            yield from map(checker.check, left)


def in_processes(pool: ProcessPoolExecutor, work: Callable[[Task], Result], tasks: Iterable[Task]) -> Iterator[Result]:
    """The results of the tasks, in their order; whatever interrupts ends the pool and its processes at once."""
    try:
        yield from pool.map(work, tasks)
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


def _check_apart(path: Path, settings: FileSettings) -> FileResult:
    """A file in a process of its own: the way on where a process died and nobody knows over which file."""
    with _pool(settings, 1) as pool:
        try:
            return pool.submit(_check_batch, [path]).result()[0]
        except BrokenProcessPool:
            display = display_path(path, Path.cwd())
            message = "cannot be analyzed: the process died over it, a bug in breakscan or Python: please report it"
            return FileResult(str(path), errors=[SourceError(display, 1, 1, message)])


def _pool(settings: FileSettings, workers: int) -> ProcessPoolExecutor:
    return ProcessPoolExecutor(workers, initializer=_start, initargs=(settings, str(Path.cwd())))


_checker: Checker | None = None


def start_worker(folder: str) -> None:
    """What every worker process begins with: the parent's folder, and that Ctrl-C is the parent's to act on."""
    os.chdir(folder)
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _start(settings: FileSettings, folder: str) -> None:
    global _checker
    start_worker(folder)
    gc.disable()
    _checker = Checker(settings)


def _check_batch(files: Iterable[Path]) -> list[FileResult]:
    assert _checker is not None
    # What a result depends on is hundreds of paths, which nobody asks for again.
    return [replace(_checker.check(path), depends={}) for path in files]
