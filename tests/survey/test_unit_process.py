"""The process that runs the stages of a unit."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from breakscan.model.dataclass_json import encode
from breakscan.survey.run_unit import Task, result_of
from breakscan.survey.unit_process import UnitProcesses
from breakscan.survey.units import SurveyStage, Unit

pytestmark = pytest.mark.process


def task(folder: Path) -> Task:
    return Task(Unit("a", command=("a.py",)), str(folder), "/no/such/python", (SurveyStage.EXPLAIN,), 9.0, None)


def test_it_ends_by_itself_while_whoever_asked_is_there(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "breakscan.survey.run_unit"]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdin.write(json.dumps(encode(task(tmp_path))) + "\n")
        process.stdin.flush()
        assert result_of(process.stdout.readline()).status == "fault"
        assert (process.wait(60), process.stderr.read()) == (0, "")


def test_after_stop_nothing_begins(tmp_path: Path) -> None:
    processes = UnitProcesses()
    assert [one.status for one in processes.results(task(tmp_path))] == ["fault"]
    processes.stop()
    assert list(processes.results(task(tmp_path))) == []
