"""Programs run under ``breakscan explain``, and what was recorded of one big one."""

import atexit
import functools
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from warm import WarmProcess

from breakscan.explanation.explanation import Explanation
from breakscan.explanation.from_processes import explain_processes
from breakscan.recording.launch import ProgramExit, run_recorded
from breakscan.recording.recording import read_recording
from breakscan.recording.records import Record
from breakscan.report.explain.json import explain_object
from breakscan.rulebook.library import load_library
from breakscan.source.source_files import SourceFiles

Explain = Callable[..., Explanation]
"""Runs a program and explains it."""
ZOO = Path(__file__).parent / "zoo.py"


@dataclass
class Done:
    """How a process ended, with its output as bytes."""

    status: int
    out: bytes
    err: bytes

    @property
    def report(self) -> str:
        """What breakscan wrote to stderr after the program's own output."""
        return self.err.decode()[self.err.decode().find("───") :]


@dataclass
class Folder:
    """A working directory with programs in it."""

    path: Path

    def write(self, name: str, text: str) -> None:
        file = self.path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")

    def python(self, *arguments: str, stdin: bytes = b"", env: dict[str, str] | None = None) -> Done:
        done = subprocess.run(
            [sys.executable, *arguments],
            input=stdin,
            capture_output=True,
            cwd=self.path,
            env=environment() | (env or {}),
            timeout=120,
        )
        return Done(done.returncode, done.stdout, done.stderr)

    def explain(self, *arguments: str, **options: Any) -> Done:
        return self.python("-m", "breakscan", "explain", *arguments, **options)

    def explain_json(self, *arguments: str, **options: Any) -> tuple[Done, Any]:
        done = self.explain("--format", "json", "--output", "report.json", *arguments, **options)
        return done, json.loads((self.path / "report.json").read_text(encoding="utf-8"))


def environment() -> dict[str, str]:
    # pytest prints whole failures in its summary where these two are set.
    dropped = {"CI", "BUILD_NUMBER"}
    dropped |= {"COLUMNS", "FORCE_COLOR", "PYTHONPATH", "TORCH_LOGS", "TORCH_COMPILE_JOB_ID"}
    return {
        **{k: v for k, v in os.environ.items() if k not in dropped},
        "OMP_NUM_THREADS": "1",
        "CUDA_VISIBLE_DEVICES": "",
    }


def run_recorded_here(script: Path, recording: Path, **variables: str) -> ProgramExit:
    """Runs a script under the recorder, in an environment as in tests of processes."""
    before, wanted = dict(os.environ), environment() | variables
    try:
        os.environ.clear()
        os.environ.update(wanted)
        outcome = run_recorded([str(script)], recording)
    finally:
        os.environ.clear()
        os.environ.update(before)
    return outcome


def explained_records(records: list[list[Record]], script: Path, outcome: ProgramExit | None = None) -> Explanation:
    """The explanation of what was recorded of a script; its folder is not shown."""
    return explain_processes(
        records,
        argv=[script.name],
        outcome=outcome,
        rules=load_library(),
        show=lambda path: os.path.relpath(path, script.parent) if path.startswith(str(script.parent)) else path,
        files=SourceFiles.trusted(),
    )


@functools.cache
def warm_process() -> WarmProcess:
    """The process of this one in whose forks programs run that need none of their own."""
    process = WarmProcess({**environment(), "PYTHONPATH": os.pathsep.join(filter(None, sys.path))})
    atexit.register(process.end)
    return process


def explained_here(folder: Path, text: str, *, may_fail: bool = False) -> Explanation:
    """The explanation of a program that runs in a fork, which takes a tenth of the time of a process of its own."""
    script, records = folder / "script.py", folder / "recording"
    script.write_text(text, encoding="utf-8")
    shutil.rmtree(records, ignore_errors=True)
    records.mkdir()
    outcome = warm_process().run(script, records)
    assert may_fail or outcome.status == 0, script.with_suffix(".err").read_text(encoding="utf-8")
    return explained_records(read_recording(records), script, outcome)


@dataclass
class Zoo:
    """The records of ``zoo.py``, and their explanation."""

    recording: list[list[Record]]
    lines: list[str]
    outcome: ProgramExit

    def explain(self, keep: Callable[[Record], Record | None] = lambda record: record) -> Any:
        """The report as JSON, of the records that ``keep`` lets through as it returns them."""
        return explain_object(self.explanation(keep))

    def explanation(self, keep: Callable[[Record], Record | None] = lambda record: record) -> Explanation:
        """The explanation of the records that ``keep`` selects."""
        kept = [[new for record in records if (new := keep(record))] for records in self.recording]
        return explained_records(kept, ZOO, self.outcome)

    def line(self, mark: str) -> int:
        """The line that carries the comment ``# MARK``."""
        found = [number for number, line in enumerate(self.lines, 1) if line.endswith(f"# {mark}")]
        assert len(found) == 1, mark
        return found[0]
