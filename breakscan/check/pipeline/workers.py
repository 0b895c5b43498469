"""Checks many files at once, on all cores."""

from __future__ import annotations

import gc
import multiprocessing
import os
import signal
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from pathlib import Path
from threading import Thread
from typing import TypeVar

from breakscan.check.pipeline.file_checkers import FileCheckers
from breakscan.check.pipeline.result_keeper import ResultKeeper
from breakscan.check.pipeline.results import FileResult
from breakscan.model.findings import SourceError
from breakscan.rulebook.config import FileSettings
from breakscan.source.cores import usable_cores
from breakscan.source.paths import display_path

Task = TypeVar("Task")
Result = TypeVar("Result")

FILES_PER_TASK = 16
"""Enough to make handing a task over cheap, few enough to keep all cores busy to the end."""
FEWEST_FILES = 24
"""Below this, starting processes costs more than it saves."""
LAST_SECONDS = 2.0
"""For a pool of processes to end, once they are asked to."""


def check_files(
    files: Sequence[Path], settings: FileSettings, jobs: int | None, checkers: FileCheckers | None = None
) -> Iterator[FileResult]:
    """The result of each file, in some order.  What it depends on is kept with it, and not handed on.

    ``checkers`` check the files where that takes no other process, and keep their trees.
    """
    if not files:
        return
    workers = min(jobs or usable_cores(), len(files) // FILES_PER_TASK + 1)
    if workers == 1 or len(files) < FEWEST_FILES:
        with no_collector():
            keeper = ResultKeeper(settings, checkers)
            for path in files:
                yield _without_depends(keeper.check(path))
            keeper.release(keep=checkers)
        return
    batches = _batches(files, workers)
    done = 0
    try:
        for results in in_processes(_pool(settings, workers), _check_batch, batches):
            yield from results
            done += 1
    except (BrokenProcessPool, OSError) as error:
        left = [path for batch in batches[done:] for path in batch]
        if isinstance(error, BrokenProcessPool):
            for path in left:
                yield _check_apart(path, settings)
        else:  # the system has no room for more processes or their pipes
            yield from check_files(left, settings, 1, checkers)


@contextmanager
def no_collector() -> Iterator[None]:
    """The collector walks all trees that are kept, over and over, and finds nothing: they are let go by hand."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def _batches(files: Sequence[Path], workers: int) -> list[list[Path]]:
    """Files that lie together draw in the same others; the largest batches first, so that none is left for the end."""
    ordered = sorted(files)
    size = max(1, min(FILES_PER_TASK, len(ordered) // workers))
    batches = [ordered[i : i + size] for i in range(0, len(ordered), size)]
    return sorted(batches, key=lambda batch: -sum(map(_size, batch)))


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


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


def _without_depends(result: FileResult) -> FileResult:
    result.depends = {}  # hundreds of paths, which nobody asks for again
    return result


_keeper: ResultKeeper | None = None


def start_worker(folder: str) -> None:
    """What every worker process begins with: the parent's folder, and that Ctrl-C is the parent's to act on."""
    os.chdir(folder)
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _start(settings: FileSettings, folder: str) -> None:
    global _keeper
    start_worker(folder)
    gc.disable()
    _keeper = ResultKeeper(settings)


def _check_batch(files: Iterable[Path]) -> list[FileResult]:
    assert _keeper is not None
    return [_without_depends(_keeper.check(path)) for path in files]
