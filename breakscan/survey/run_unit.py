"""Runs the stages of one unit, each in a process with limits of time and memory, and keeps the facts of its report."""

import contextlib
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from breakscan.model.problem import ProblemKind
from breakscan.recording.launch import RUN_COMMAND
from breakscan.survey.manifest import StageResult, StageStatus, SurveyStage, Unit

TAIL = 8192  # bytes that are kept of what a command says
_EVERY = 0.5  # seconds between two looks at a command, each of which reads all processes of the machine
_MARK = "BREAKSCAN_SURVEY_UNIT"  # the variable that marks the processes of a unit, also out of its session
_running: dict[int, str] = {}  # the leaders of the sessions that run now, with their marks
_ROUNDS = 20  # repetitions of the search for processes, since one may start another meanwhile
_SHARE = 0.75  # of a unit's time, in which ``tune`` looks for a faster program; its first run may take the rest
Ending = Literal["exited", "time", "memory"]


@dataclass(frozen=True, slots=True)
class LimitedRun:
    """The end of a command: ``status`` is negative for the signal that ended it.  ``peak`` is the most memory that its
    processes held together, in bytes; None if that cannot be read (it can on Linux)."""

    ending: Ending
    status: int
    seconds: float
    peak: int | None
    said: str


def run_limited(
    command: Sequence[str],
    *,
    seconds: float,
    memory: int | None = None,
    folder: Path | None = None,
    environment: Mapping[str, str] | None = None,
) -> LimitedRun:
    """Run a command in a new session, without standard input, and end it with all that it started."""
    given = os.environ if environment is None else environment
    mark = f"{given.get(_MARK, '')}/{uuid.uuid4().hex}"
    started = time.monotonic()
    peak: int | None = None
    ending: Ending = "exited"
    with tempfile.TemporaryFile() as said:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=said,
            stderr=subprocess.STDOUT,
            cwd=folder,
            env={**given, _MARK: mark},
            start_new_session=True,
        )
        _running[process.pid] = mark
        try:
            while process.poll() is None:
                held = _memory_of_session(process.pid)
                peak = held if peak is None or (held is not None and held > peak) else peak
                if memory is not None and held is not None and held > memory:
                    ending = "memory"
                    break
                if time.monotonic() - started > seconds:
                    ending = "time"
                    break
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(_EVERY)
        finally:
            _end_session(process.pid, mark)
            process.wait()
            _running.pop(process.pid, None)
        size = said.seek(0, os.SEEK_END)
        said.seek(max(0, size - TAIL))
        text = said.read().decode(errors="replace")
    return LimitedRun(ending, process.returncode, time.monotonic() - started, peak, text)


def end_running() -> None:
    """Ends all commands that run, with what they started."""
    for leader, mark in list(_running.items()):
        _end_session(leader, mark)


def _end_session(leader: int, mark: str) -> None:
    """Ends a session, and on systems with ``/proc`` what else has its mark."""
    for process in _session(leader) or [leader]:
        _kill(process)
    if hasattr(os, "killpg"):
        with contextlib.suppress(OSError):
            os.killpg(leader, signal.SIGKILL)
    for _ in range(_ROUNDS):
        found = [process for process in _processes() if process != os.getpid() and _is_marked(process, mark)]
        if not found:
            return
        for process in found:
            _kill(process)


def _kill(process: int) -> None:
    with contextlib.suppress(OSError):
        # Windows has no SIGKILL: what os.kill does there is as final.
        os.kill(process, getattr(signal, "SIGKILL", signal.SIGTERM))


def _is_marked(process: int, mark: str) -> bool:
    try:
        environment = Path("/proc", str(process), "environ").read_bytes()
    except OSError:
        return False
    return f"\0{_MARK}={mark}".encode() in b"\0" + environment


def _processes() -> list[int]:
    """Return all processes; none on systems without ``/proc``."""
    try:
        return [int(name) for name in os.listdir("/proc") if name.isdigit()]
    except OSError:
        return []


def _session(leader: int) -> list[int]:
    found = []
    for process in _processes():
        with contextlib.suppress(OSError):
            if os.getsid(process) == leader:
                found.append(process)
    return found


def _memory_of_session(leader: int) -> int | None:
    """The resident memory of its processes, in bytes; what they share counts for each."""
    page = os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 4096
    total = None
    for process in _session(leader):
        with contextlib.suppress(OSError, IndexError, ValueError):
            pages = int(Path("/proc", str(process), "statm").read_text(encoding="ascii").split()[1])
            total = (total or 0) + pages * page
    return total


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
    """The facts of a report; of ``verify`` and ``bench`` the verdict and the speed of each change and each way, of
    ``tune`` the changes of the best program and what came of them."""
    if stage is SurveyStage.EXPLAIN:
        return explain_facts(report)
    if stage is SurveyStage.TUNE:
        best, keys = report["best"], "candidates equal compared breaks recompiles eager_functions ratio held_back"
        return {"says": report["says"], "best": best and {key: best[key] for key in keys.split()}}
    is_proof = stage is SurveyStage.VERIFY
    name, keys = "proofs" if is_proof else "ways", "label rewrite verdict ratio" if is_proof else "way ratio problem"
    return {name: [{key: one[key] for key in keys.split()} for one in report[name]]}


_MISSING = re.compile(r"^(?:\w+\.)*(?:ModuleNotFoundError|ImportError): ", re.MULTILINE)
_EXCEPTION = 0xC0000000  # from here on, the exit status of a process on Windows says which exception ended it


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
        return self.unit.device.startswith("cuda")


def run_stage(stage: SurveyStage, task: Task) -> StageResult:
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
        options = ["--format", "json", "--output", str(report)]
        script = None
        if stage is SurveyStage.TUNE:
            # The call that compiles a model has to be in a file that a patch may change.
            script = shutil.copy(Path(__file__).with_name("model_program.py"), made)
            options += ["--time", str(task.seconds * _SHARE)]
        run = run_limited(
            [task.executable, "-c", RUN_COMMAND, stage.value, *options, *task.unit.program(script)],
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
