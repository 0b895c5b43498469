"""Runs the stages of one unit: ``python -m breakscan.survey.run_unit`` reads a task and prints the results.

The process ends, with all that it started, when its standard input does: whoever asked is gone then.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import socket
import subprocess
import sys
import tempfile
import threading
import uuid
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from breakscan.model.dataclass_json import decoder, encode
from breakscan.model.problem import ProblemKind
from breakscan.survey.limited_process import MARK, LimitedRun, end_marked, end_running, run_limited
from breakscan.survey.units import (
    NOTHING,
    Explained,
    StageResult,
    StageStatus,
    SurveyStage,
    Unit,
    has_work,
)

Report = Mapping[str, Any]


def explain_facts(report: Report) -> dict[str, Any]:
    """Breaks, functions that run eager and recompiles by rule and place, each with the ``seconds`` that it cost, and
    what the run cost."""
    summary, problems = report["summary"], report["problems"]
    functions = (ProblemKind.FUNCTION.value, ProblemKind.FAILURE.value)
    return {
        "breaks": [
            _place(one) | {"verdict": one["verdict"], "gb": one["gb_id"], "seconds": one["cost"]}
            for one in problems
            if one["kind"] == ProblemKind.BREAK.value
        ],
        "eager": [
            _place(one) | {"of_break": one["cause"] == ProblemKind.BREAK.value, "seconds": one["cost"]}
            for one in problems
            if one["kind"] in functions and one["verdict"] is not None
        ],
        "recompiles": [
            _place({**one, "functions": [one["function"]], "reason": one["guard"]}) | {"seconds": one["seconds"]}
            for one in report["recompiles"]
        ],
        "graphs": summary["graphs"],
        "entries": summary["entries"],
        "ops": summary["ops"],
        "compile_seconds": summary["compile_seconds"],
        "seconds": report["script"]["seconds"],
        "files": sorted(report["traced"]),
    }


def _place(one: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "rule": one["rule"],
        "path": one["site"]["path"],
        "line": one["site"]["line"],
        "function": next(iter(one["functions"]), None),
        "origin": one["origin"],
        "reason": one["reason"],
    }


def check_facts(report: Report) -> dict[str, Any]:
    """The number of findings of each rule."""
    return {"by_rule": report["summary"]["by_rule"], "files": report["summary"]["files"]}


def fix_facts(report: Report) -> dict[str, Any]:
    """The number of findings by outcome, and the number that each rewrite would remove."""
    outcomes = dict.fromkeys(FIX_OUTCOMES, 0)
    rewrites: Counter[str] = Counter()
    for file in report["files"]:
        for name in FIX_OUTCOMES:
            outcomes[name] += len(file[name])
        rewrites.update(one["rewrite"] for name in FIX_OUTCOMES[:-2] for one in file[name])
    return {"outcomes": outcomes, "rewrites": dict(rewrites)}


FIX_OUTCOMES = ("safe", "unsafe", "declined", "without")
"""The lists of a file in the JSON of ``fix``; the last two are of findings that stay."""


def verify_facts(report: Report) -> dict[str, Any]:
    """The verdict of each change, and the speed of a step with it."""
    return {
        "proofs": [
            {"label": one["label"], "rewrite": one["rewrite"], "verdict": one["verdict"], "ratio": one["ratio"]}
            for one in report["proofs"]
        ]
    }


def bench_facts(report: Report) -> dict[str, Any]:
    """The speed of each way compared with eager."""
    ways = [{"way": one["way"], "ratio": one["ratio"], "problem": one["problem"]} for one in report["ways"]]
    return {"ways": ways, "best": report["best"]}


FACTS: Mapping[SurveyStage, Callable[[Report], dict[str, Any]]] = {
    SurveyStage.EXPLAIN: explain_facts,
    SurveyStage.CHECK: check_facts,
    SurveyStage.FIX: fix_facts,
    SurveyStage.VERIFY: verify_facts,
    SurveyStage.BENCH: bench_facts,
}


_MISSING = re.compile(r"^(?:\w+\.)*(?:ModuleNotFoundError|ImportError): ", re.MULTILINE)
_EXCEPTION = 0xC0000000
"""From here on, the exit status of a process on Windows says which exception ended it."""


@dataclass(frozen=True, slots=True)
class Task:
    """The stages of a unit that a Python is to run in a folder of this machine, within ``seconds`` and ``memory``
    (bytes) each.  Its results are kept under ``key``.  ``explained`` is what an earlier ``explain`` saw; ``device`` is
    the number of the GPU that it may use."""

    key: str
    unit: Unit
    folder: str
    executable: str
    stages: tuple[SurveyStage, ...]
    seconds: float
    memory: int | None
    explained: Explained = NOTHING
    device: int | None = None

    @property
    def needs_gpu(self) -> bool:
        """True if it runs on a GPU."""
        return self.unit.device.startswith("cuda")


def run_stages(task: Task) -> Iterator[StageResult]:
    """Runs the stages of a task, but for those that have nothing to look at."""
    explained = task.explained
    for stage in task.stages:
        if not has_work(stage, explained):
            yield not_run(stage, StageStatus.SKIPPED)
            continue
        try:
            result = _run(stage, task, explained.files)
        except OSError as error:  # such as a full disk, or an interpreter that is gone
            result = not_run(stage, StageStatus.FAULT, f"breakscan could not run it: {error}")
        if stage is SurveyStage.EXPLAIN:
            explained = Explained.of(result.facts)
        yield result


def not_run(stage: SurveyStage, status: StageStatus, said: str = "") -> StageResult:
    """The result of a stage that did not run on this machine."""
    return StageResult(stage.value, status.value, 0.0, None, said=said, host=socket.gethostname())


def _run(stage: SurveyStage, task: Task, files: tuple[str, ...]) -> StageResult:
    with tempfile.TemporaryDirectory(prefix="breakscan-survey-", ignore_cleanup_errors=True) as made:
        report = Path(made, "report.json")
        run = run_limited(
            [task.executable, "-m", "breakscan", *_arguments(stage, task.unit, files, str(report))],
            seconds=task.seconds,
            memory=task.memory,
            folder=Path(task.folder),
            environment=_environment(task, made),
        )
        try:
            data: Mapping[str, Any] = json.loads(report.read_text(encoding="utf-8"))
            facts = FACTS[stage](data)
        except (OSError, ValueError, KeyError, TypeError):
            data, facts = {}, {}
    status = _status(stage, run, data)
    lines = [line for line in run.said.splitlines() if str(report) not in line]
    said = "" if status is StageStatus.OK else "\n".join(lines).strip()
    return StageResult(stage.value, status.value, run.seconds, run.peak, facts, said, socket.gethostname())


def _arguments(stage: SurveyStage, unit: Unit, files: tuple[str, ...], report: str) -> list[str]:
    common = [stage.value, "--format", "json", "--output", report]
    if stage in (SurveyStage.CHECK, SurveyStage.FIX):
        return [*common, "--no-cache", "-j", "1", *files]
    return [*common, *unit.program()]


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
    # Whatever a program does, explain reports it; nothing of it runs in check and fix.
    return StageStatus.FAILED if data or stage.measures_time else StageStatus.FAULT


def line_of(result: StageResult) -> str:
    """A result as a line of JSON."""
    return json.dumps(asdict(result))


def result_of(line: str) -> StageResult:
    """The result in a line of :func:`line_of`."""
    return StageResult(**json.loads(line))


class UnitProcesses:
    """The processes that run now; after :meth:`stop`, none begins."""

    def __init__(self) -> None:
        self._running: set[subprocess.Popen[str]] = set()
        self._changing = threading.Lock()
        self._stopped = False

    def results(self, task: Task) -> Iterator[StageResult]:
        """Yield the results of the stages of a task, as they end.  If their process ends before, they have crashed."""
        mark = uuid.uuid4().hex
        process = self._begun(mark)
        if process is None:
            return
        assert process.stdin is not None
        assert process.stdout is not None
        waiting = list(task.stages)
        try:
            with contextlib.suppress(BrokenPipeError):
                process.stdin.write(json.dumps(encode(task)) + "\n")
                process.stdin.flush()
            for line in process.stdout:
                result = result_of(line)
                waiting = [stage for stage in waiting if stage.value != result.stage]
                yield result
            process.wait()
        finally:
            with contextlib.suppress(OSError):
                process.stdin.close()
            process.stdout.close()
            process.wait()
            self._running.discard(process)
            if process.returncode:
                end_marked(mark)
        if not self._stopped:
            said = f"the process that ran it ended with {process.returncode}, such as for want of memory"
            for stage in waiting:
                yield not_run(stage, StageStatus.CRASHED, said)

    def stop(self) -> None:
        """Ends all."""
        with self._changing:
            self._stopped = True
        for process in list(self._running):
            with contextlib.suppress(OSError):
                assert process.stdin is not None
                process.stdin.close()

    def _begun(self, mark: str) -> subprocess.Popen[str] | None:
        """A process whose standard input stays open while it works: it ends when that does."""
        with self._changing:  # whatever begins is known to stop
            if self._stopped:
                return None
            process = subprocess.Popen(
                [sys.executable, "-m", "breakscan.survey.run_unit"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                text=True,
                start_new_session=True,
                env={**os.environ, MARK: mark},
            )
            self._running.add(process)
        return process


def _end_with_standard_input() -> None:
    # Not by sys.stdin: this thread still reads it when Python ends, which waits a second for it and then aborts.
    while os.read(0, 4096):
        pass
    end_running()
    os._exit(1)  # sys.exit would end this thread alone


def main() -> None:
    task: Task = decoder(Task)(json.loads(sys.stdin.readline()))
    threading.Thread(target=_end_with_standard_input, daemon=True).start()
    for result in run_stages(task):
        print(line_of(result), flush=True)


if __name__ == "__main__":
    main()
