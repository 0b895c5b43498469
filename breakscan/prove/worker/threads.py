"""Asks several workers at the same time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

Result = TypeVar("Result")


def run_all(tasks: Sequence[Callable[[], Result]], count: int, stop: Callable[[], None]) -> list[Result]:
    """Runs tasks, ``count`` at a time, in threads unless that is one. Returns their results in order.

    ``stop`` makes the others end early when one of them raises, or this thread is interrupted.
    """
    if count <= 1:
        return [task() for task in tasks]
    pool = ThreadPoolExecutor(count)
    futures = [pool.submit(task) for task in tasks]
    try:
        return [future.result() for future in futures]
    except BaseException:
        pool.shutdown(wait=False, cancel_futures=True)
        stop()
        raise
    finally:
        pool.shutdown()
