"""Runs the stages of one unit, each in a process of its own, and keeps the facts of its report."""

from __future__ import annotations

import json
import os
import re
import socket
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from breakscan.model.problem import ProblemKind
from breakscan.survey.limited_process import LimitedRun, run_limited
from breakscan.survey.units import StageResult, StageStatus, SurveyStage, Unit

Report = Mapping[str, Any]


def explain_facts(report: Report) -> dict[str, Any]:
    """Breaks, functions that run eager and recompiles by rule and place, each with the ``seconds`` that it cost."""
    problems = report["problems"]
    functions = (ProblemKind.FUNCTION.value, ProblemKind.FAILURE.value)
    return {
        "breaks": [_place(one, one["cost"]) for one in problems if one["kind"] == ProblemKind.BREAK.value],
        "eager": [
            _place(one, one["cost"]) | {"of_break": one["cause"] == ProblemKind.BREAK.value}
            for one in problems
            if one["kind"] in functions and one["verdict"] is not None
        ],
        "recompiles": [
            _place({**one, "functions": [one["function"]], "reason": one["guard"]}, one["seconds"])
            for one in report["recompiles"]
        ],
        "graphs": report["summary"]["graphs"],
        "compile_seconds": report["summary"]["compile_seconds"],
    }


def _place(one: Mapping[str, Any], seconds: float | None) -> dict[str, Any]:
    where = {"path": one["site"]["path"], "line": one["site"]["line"], "function": next(iter(one["functions"]), None)}
    return {"rule": one["rule"], **where, "reason": one["reason"], "seconds": seconds}


def _facts(stage: SurveyStage, report: Report) -> dict[str, Any]:
    """The facts of a report; of ``verify`` and ``bench`` the verdict and the speed of each change and each way."""
    if stage is SurveyStage.EXPLAIN:
        return explain_facts(report)
    is_proof = stage is SurveyStage.VERIFY
    name, keys = "proofs" if is_proof else "ways", "label rewrite verdict ratio" if is_proof else "way ratio problem"
    return {name: [{key: one[key] for key in keys.split()} for one in report[name]]}


_MISSING = re.compile(r"^(?:\w+\.)*(?:ModuleNotFoundError|ImportError): ", re.MULTILINE)
_EXCEPTION = 0xC0000000
"""From here on, the exit status of a process on Windows says which exception ended it."""


_START = (
    "import signal, sys; del sys.path[0]; from breakscan.recording.launch import die_with_parent; "
    "die_with_parent(signal.SIGTERM); from breakscan.__main__ import main; sys.exit(main())"
)
"""The code that runs a command, which ends with whoever started it."""


@dataclass(frozen=True, slots=True)
class Task:
    """The stages of a unit that a Python is to run in a folder of this machine, within ``seconds`` and ``memory``
    (bytes) each.  Its results are kept under ``key``.  ``device`` is the number of the GPU that it may use."""

    key: str
    unit: Unit
    folder: str
    executable: str
    stages: tuple[SurveyStage, ...]
    seconds: float
    memory: int | None
    device: int | None = None

    @property
    def needs_gpu(self) -> bool:
        """True if it runs on a GPU."""
        return self.unit.device.startswith("cuda")


def run_stage(stage: SurveyStage, task: Task) -> StageResult:
    """Runs one of the stages of a task."""
    try:
        return _run(stage, task)
    except OSError as error:  # such as a full disk, or an interpreter that is gone
        return not_run(stage, StageStatus.FAULT, f"breakscan could not run it: {error}")


def not_run(stage: SurveyStage, status: StageStatus, said: str = "") -> StageResult:
    """The result of a stage that did not run on this machine."""
    return StageResult(stage.value, status.value, 0.0, None, said=said, host=socket.gethostname())


def _run(stage: SurveyStage, task: Task) -> StageResult:
    with tempfile.TemporaryDirectory(prefix="breakscan-survey-", ignore_cleanup_errors=True) as made:
        report = Path(made, "report.json")
        written = ("--format", "json", "--output", str(report))
        run = run_limited(
            [task.executable, "-c", _START, stage.value, *written, *task.unit.program()],
            seconds=task.seconds,
            memory=task.memory,
            folder=Path(task.folder),
            environment=_environment(task, made),
        )
        try:
            data: Mapping[str, Any] = json.loads(report.read_text(encoding="utf-8"))
            facts = _facts(stage, data)
        except (OSError, ValueError, KeyError, TypeError):
            data, facts = {}, {}
    status = _status(stage, run, data)
    lines = [line for line in run.said.splitlines() if str(report) not in line]
    said = "" if status is StageStatus.OK else "\n".join(lines).strip()
    return StageResult(stage.value, status.value, run.seconds, run.peak, facts, said, socket.gethostname())


def _environment(task: Task, made: str) -> dict[str, str]:
    # Runs at the same time would fight for the cores, and a warm cache of kernels would hide the cost of compiling.
    threads = {name: os.environ.get(name, "1") for name in ("OMP_NUM_THREADS", "TORCHINDUCTOR_COMPILE_THREADS")}
    folders = {"TORCHINDUCTOR_CACHE_DIR": os.path.join(made, "inductor"), "BREAKSCAN_RUNS": os.path.join(made, "runs")}
    device = {} if task.device is None else {"CUDA_VISIBLE_DEVICES": str(task.device)}
    return {**os.environ, **threads, **folders, **device}


def _status(stage: SurveyStage, run: LimitedRun, data: Mapping[str, Any]) -> StageStatus:
    if run.ending == "time":
        return StageStatus.TIMEOUT
    if run.ending == "memory":
        return StageStatus.MEMORY
    ended = data.get("script", {}).get("exit_status", 0) if stage is SurveyStage.EXPLAIN else 0
    if any(status < 0 or status >= _EXCEPTION for status in (run.status, ended)):
        return StageStatus.CRASHED
    if data and ended == 0:
        return StageStatus.OK
    if _MISSING.search(run.said):
        return StageStatus.MISSING
    # Whatever a program does, explain reports it.
    return StageStatus.FAILED if data or stage.measures_time else StageStatus.FAULT
