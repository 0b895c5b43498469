"""Runs the stages of one unit: ``python -m breakscan.survey.run_unit`` reads a task and prints what each stage gave.

The process ends, with all that it started, when its standard input does: whoever asked is gone then.
"""

from __future__ import annotations

import json
import os
import re
import socket
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from breakscan.dataclass_json import decoder
from breakscan.survey.facts import FACTS
from breakscan.survey.limited_process import LimitedRun, end_running, run_limited
from breakscan.survey.stage_results import StageResult, StageStatus
from breakscan.survey.units import SurveyStage, Unit

_MISSING = re.compile(r"^(?:\w+\.)*(?:ModuleNotFoundError|ImportError): ", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Task:
    """The stages of a unit that are to be run by a Python, within ``seconds`` and ``memory`` (bytes) each.  ``files``
    are those that an earlier ``explain`` saw compiled; ``device`` is the number of the GPU that it may use."""

    unit: Unit
    executable: str
    stages: tuple[SurveyStage, ...]
    seconds: float
    memory: int | None
    files: tuple[str, ...] = ()
    device: int | None = None


def run_stages(task: Task) -> Iterator[StageResult]:
    """Runs the stages of a task.  Where ``explain`` compiles nothing, the others have nothing to look at."""
    files = task.files
    for stage in task.stages:
        if stage is not SurveyStage.EXPLAIN and not files:
            yield StageResult(stage.value, StageStatus.SKIPPED.value, 0.0, None, host=socket.gethostname())
            continue
        result = _run(stage, task, files)
        if stage is SurveyStage.EXPLAIN:
            files = tuple(result.facts.get("files", ()))
        yield result


def _run(stage: SurveyStage, task: Task, files: tuple[str, ...]) -> StageResult:
    with tempfile.TemporaryDirectory(prefix="breakscan-survey-") as made:
        report = Path(made, "report.json")
        run = run_limited(
            [task.executable, "-m", "breakscan", *_arguments(stage, task.unit, files, str(report))],
            seconds=task.seconds,
            memory=task.memory,
            folder=Path(task.unit.folder),
            environment=_environment(task, made),
        )
        try:
            text = report.read_text(encoding="utf-8")
            told: Mapping[str, Any] = json.loads(text)
            facts = FACTS[stage](told)
        except (OSError, ValueError, KeyError, TypeError):
            text, told, facts = None, {}, {}
    status = _status(stage, run, told)
    lines = [line for line in run.said.splitlines() if report.as_posix() not in line]
    said = "" if status is StageStatus.OK else "\n".join(lines).strip()
    return StageResult(stage.value, status.value, run.seconds, run.peak, facts, text, said, socket.gethostname())


def _arguments(stage: SurveyStage, unit: Unit, files: tuple[str, ...], report: str) -> list[str]:
    common = [stage.value, "--format", "json", "--output", report]
    if stage in (SurveyStage.CHECK, SurveyStage.FIX):
        return [*common, "--no-cache", "-j", "1", *files]
    return [*common, *unit.program()]


def _environment(task: Task, made: str) -> dict[str, str]:
    # Runs beside one another would fight for the cores, and a warm cache of kernels would hide what compiling costs.
    threads = {name: os.environ.get(name, "1") for name in ("OMP_NUM_THREADS", "TORCHINDUCTOR_COMPILE_THREADS")}
    folders = {"TORCHINDUCTOR_CACHE_DIR": os.path.join(made, "inductor"), "BREAKSCAN_RUNS": os.path.join(made, "runs")}
    device = {} if task.device is None else {"CUDA_VISIBLE_DEVICES": str(task.device)}
    return {**os.environ, **threads, **folders, **device}


def _status(stage: SurveyStage, run: LimitedRun, told: Mapping[str, Any]) -> StageStatus:
    if run.ending == "time":
        return StageStatus.TIMEOUT
    if run.ending == "memory":
        return StageStatus.MEMORY
    ended = told.get("script", {}).get("exit_status", 0) if stage is SurveyStage.EXPLAIN else 0
    if run.status < 0 or ended < 0:
        return StageStatus.CRASHED
    if told and ended == 0:
        return StageStatus.OK
    if _MISSING.search(run.said):
        return StageStatus.MISSING
    # Whatever a program does, explain reports it; nothing of it runs in check and fix.
    return StageStatus.FAILED if told or stage.measures_time else StageStatus.FAULT


def _end_with_standard_input() -> None:
    sys.stdin.buffer.read()
    end_running()
    os._exit(1)  # sys.exit would end this thread alone


def main() -> None:
    task: Task = decoder(Task)(json.loads(sys.stdin.readline()))
    threading.Thread(target=_end_with_standard_input, daemon=True).start()
    for result in run_stages(task):
        print(json.dumps(asdict(result)), flush=True)


if __name__ == "__main__":
    main()
