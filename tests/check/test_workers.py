"""Work in several processes, where a process dies and where none can be started."""

import os
from collections.abc import Callable
from functools import partial

import pytest

from breakscan.check.pipeline import workers
from breakscan.check.pipeline.workers import in_processes

pytestmark = pytest.mark.process


def doubling(deadly: int | None) -> Callable[[int], int]:
    def double(task: int) -> int:
        if task == deadly:
            os._exit(9)
        return 2 * task

    return double


def done(deadly: int | None) -> list[int | str]:
    here: Callable[[int], int | str] = "here {}".format
    return list(in_processes(partial(doubling, deadly), [[1, 2], [3], [4, 5]], 2, here=here, died="died {}".format))


def test_a_process_that_dies_costs_only_its_own_task() -> None:
    assert done(None) == [2, 4, 6, 8, 10]
    assert done(4) == [2, 4, 6, "died 4", 10]


def test_the_work_is_done_here_where_no_process_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError("too many processes")

    monkeypatch.setattr(workers, "_pool", full)
    assert done(None) == [f"here {task}" for task in range(1, 6)]
