"""Runs a program in a process of its own and tells what happened to it."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from breakscan.explain.from_recording import explain_run
from breakscan.explain.repro.problem import RecordedProblem, problems
from breakscan.record.session import SessionError, read_run
from breakscan.rulebook.library import Library
from breakscan.source.source_files import SourceFiles

MOST_SECONDS = 300


@dataclass(frozen=True, slots=True)
class SecondRun:
    """``problems`` are None where nothing was recorded, ``status`` where it ran too long; ``error`` is the last line
    of what it wrote on standard error, where it failed."""

    problems: Sequence[RecordedProblem] | None
    status: int | None
    error: str


def run_again(name: str, text: str, rules: Library) -> SecondRun:
    """Runs the text as a file of that name in an empty folder."""
    with tempfile.TemporaryDirectory(prefix="breakscan-repro-") as folder:
        script, recording = Path(folder, name), Path(folder, "recording")
        script.write_text(text, encoding="utf-8")
        command = [sys.executable, "-m", "breakscan", "explain", "--save", str(recording), "-o", os.devnull, name]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(_absolute_path())}
        try:
            done = subprocess.run(
                command,
                cwd=folder,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                timeout=MOST_SECONDS,
            )
        except subprocess.TimeoutExpired:
            return SecondRun(None, None, "")
        error = _last_error(done.stderr.decode("utf-8", "replace")) if done.returncode else ""
        try:
            run = read_run(recording)
        except SessionError:
            return SecondRun(None, done.returncode, error)
        files = SourceFiles.trusted()
        explanation = explain_run(run, rules=rules, show=str, files=files)
        return SecondRun(problems(explanation, files), done.returncode, error)


def _absolute_path() -> list[str]:
    """The entries of PYTHONPATH, which may be relative to the working directory."""
    return [os.path.abspath(entry) for entry in os.environ.get("PYTHONPATH", "").split(os.pathsep) if entry]


def _last_error(text: str) -> str:
    """The line that names the exception of a traceback."""
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith((" ", "breakscan:"))]
    return next(
        (line for line in reversed(lines) if "Error" in line or "Exception" in line), lines[-1] if lines else ""
    )
