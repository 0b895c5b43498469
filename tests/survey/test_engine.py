"""Tasks on one machine: which of them run side by side, and how they end."""

import threading
import time
from pathlib import Path

import pytest

from breakscan.survey import survey as module
from breakscan.survey.manifest import StageResult, SurveyStage, Unit
from breakscan.survey.run_unit import Task, run_stage
from breakscan.survey.survey import LocalEngine


def a_task(key: str, unit: Unit, folder: str = ".") -> Task:
    return Task(key, unit, folder, "/no/such/python", (SurveyStage.EXPLAIN,), 9.0, None)


class Running:
    """Stands in for what runs a stage: notes the tasks that run at the same time, with their GPUs.  The first ones wait
    until there were ``most`` of them, or for ten seconds."""

    def __init__(self, most: int = 1) -> None:
        self.most = most
        self.now: list[tuple[str, int | None]] = []
        self.seen: list[list[tuple[str, int | None]]] = []
        self._changing = threading.Condition()

    def __call__(self, stage: SurveyStage, task: Task) -> StageResult:
        one = (task.unit.device, task.device)
        with self._changing:
            self.now.append(one)
            self.seen.append(sorted(self.now, key=str))
            self._changing.notify_all()
            self._changing.wait_for(lambda: max(map(len, self.seen)) >= self.most, 10)
        time.sleep(0.05)
        with self._changing:
            self.now.remove(one)
        return StageResult(stage.value, "ok", 0.0, None)


@pytest.mark.parametrize(("alone", "most"), [(False, 3), (True, 1)])
def test_each_gpu_has_one_task_and_others_run_next_to_it(
    monkeypatch: pytest.MonkeyPatch, alone: bool, most: int
) -> None:
    running = Running(most)
    monkeypatch.setattr(module, "run_stage", running)
    devices = ["cuda", "cuda:0", "cuda", "cpu", "cpu", "cpu"]
    tasks = [a_task(str(number), Unit("a", device=device)) for number, device in enumerate(devices)]
    results = list(LocalEngine(3, [3, 5]).run(tasks, alone=alone))
    assert sorted(key for key, _ in results) == list("012345")
    assert max(map(len, running.seen)) == most
    for seen in running.seen:
        gpus = [gpu for device, gpu in seen if device.startswith("cuda")]
        assert len(set(gpus)) == len(gpus)
        assert set(gpus) <= {3, 5}
        assert all(gpu is None for device, gpu in seen if device == "cpu")


def test_an_engine_that_is_closed_begins_nothing_more(monkeypatch: pytest.MonkeyPatch) -> None:
    running = Running()
    monkeypatch.setattr(module, "run_stage", running)
    arriving = LocalEngine(1).run([a_task(str(number), Unit("a")) for number in range(9)], alone=False)
    next(arriving)
    arriving.close()
    assert len(running.seen) <= 2
    assert running.now == []


@pytest.mark.process
def test_a_unit_that_cannot_begin_is_a_fault(tmp_path: Path) -> None:
    result = run_stage(SurveyStage.EXPLAIN, a_task("", Unit("a", command=("a.py",)), str(tmp_path)))
    assert result.status == "fault"
    assert "/no/such/python" in result.said
