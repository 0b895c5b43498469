"""Which tasks run side by side on one machine."""

from __future__ import annotations

import threading
from contextlib import ExitStack

from breakscan.survey.keyed_tasks import KeyedTask
from breakscan.survey.run_unit import Task
from breakscan.survey.units import SurveyStage, Unit
from breakscan.survey.waiting_tasks import WaitingTasks


def tasks(*devices: str) -> list[KeyedTask]:
    return [
        KeyedTask(
            f"{number} {device}", Task(Unit("a", device=device), ".", "python", (SurveyStage.EXPLAIN,), 1.0, None)
        )
        for number, device in enumerate(devices)
    ]


def taken(waiting: WaitingTasks, stack: ExitStack) -> tuple[str, int | None] | None:
    found = stack.enter_context(waiting.next())
    return None if found is None else (found[0].key, found[1])


def test_units_that_need_no_gpu_run_while_all_gpus_are_taken() -> None:
    waiting = WaitingTasks(tasks("cuda", "cuda:0", "cuda", "cpu", "cpu"), [3, 5])
    first = ExitStack()
    with ExitStack() as stack:
        assert taken(waiting, first) == ("0 cuda", 3)
        assert taken(waiting, stack) == ("1 cuda:0", 5)
        assert taken(waiting, stack) == ("3 cpu", None)
        first.close()
        assert taken(waiting, stack) == ("2 cuda", 3)
        assert taken(waiting, stack) == ("4 cpu", None)
        assert taken(waiting, stack) is None


def test_who_waits_for_a_gpu_gets_the_one_that_is_given_back() -> None:
    waiting = WaitingTasks(tasks("cuda", "cuda"), [0])
    got: list[tuple[str, int | None] | None] = []

    def wait() -> None:
        with ExitStack() as stack:
            got.append(taken(waiting, stack))

    with ExitStack() as stack:
        taken(waiting, stack)
        thread = threading.Thread(target=wait)
        thread.start()
        thread.join(0.2)
        assert got == []
    thread.join(10)
    assert got == [("1 cuda", 0)]


def test_who_waits_is_told_that_nothing_more_is_to_run() -> None:
    waiting = WaitingTasks(tasks("cuda", "cuda"), [0])
    with ExitStack() as stack:
        taken(waiting, stack)
        thread = threading.Thread(target=lambda: taken(waiting, ExitStack()))
        thread.start()
        waiting.none_left()
        thread.join(10)
        assert not thread.is_alive()
