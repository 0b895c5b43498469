"""What engines share: tasks in processes of their own, and which of them run side by side on one machine."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from contextlib import ExitStack
from pathlib import Path

import pytest

from breakscan.model.dataclass_json import encode
from breakscan.survey.engine import WaitingTasks
from breakscan.survey.run_unit import Task, UnitProcesses, result_of
from breakscan.survey.units import SurveyStage, Unit


def a_task(key: str, unit: Unit, folder: str = ".") -> Task:
    return Task(key, unit, folder, "/no/such/python", (SurveyStage.EXPLAIN,), 9.0, None)


def tasks(*devices: str) -> list[Task]:
    return [a_task(f"{number} {device}", Unit("a", device=device)) for number, device in enumerate(devices)]


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


@pytest.mark.process
def test_it_ends_by_itself_while_whoever_asked_is_there(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "breakscan.survey.run_unit"]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdin.write(json.dumps(encode(a_task("", Unit("a", command=("a.py",)), str(tmp_path)))) + "\n")
        process.stdin.flush()
        assert result_of(process.stdout.readline()).status == "fault"
        assert (process.wait(60), process.stderr.read()) == (0, "")


@pytest.mark.process
def test_after_stop_nothing_begins(tmp_path: Path) -> None:
    processes = UnitProcesses()
    assert [one.status for one in processes.results(a_task("", Unit("a", command=("a.py",)), str(tmp_path)))] == [
        "fault"
    ]
    processes.stop()
    assert list(processes.results(a_task("", Unit("a", command=("a.py",)), str(tmp_path)))) == []
