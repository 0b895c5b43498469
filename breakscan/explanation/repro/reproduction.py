"""Reproduces a problem of a run: tries the smallest program first, and keeps the first that has the same problem."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from importlib.util import find_spec
from pathlib import Path

from breakscan.explanation.explanation import Explanation
from breakscan.explanation.from_recording import explain_run
from breakscan.explanation.repro.problem import NotReproducible, Obstacle, RecordedProblem, problems
from breakscan.explanation.repro.program import MinimalProgram, Plan, minimal_program
from breakscan.explanation.repro.stand_ins import End
from breakscan.model.findings import Verdict
from breakscan.model.problem import ProblemKind
from breakscan.recording.session import SessionError, read_run
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


_MOST_PROGRAMS = 6
_ONCE = (Plan((End.HIGH,)), Plan((End.LOW,)))
"""Values that are None in some calls are not, at first."""
_TWICE = tuple(Plan(ends, alone) for ends in ((End.LOW, End.HIGH), (End.HIGH, End.LOW)) for alone in (True, False))


class ReproStatus(str, Enum):
    """The result of running the program."""

    REPRODUCED = "reproduced"
    """It has the same problem."""
    DIFFERENT = "different"
    """It ran, and does not."""
    FAILED = "failed"
    """It ended with an error before."""
    TIMED_OUT = "timed-out"
    """It had not ended after :data:`~MOST_SECONDS`."""
    NOT_RUN = "not-run"
    """There is no torch to run it with."""


@dataclass(frozen=True, slots=True)
class Reproduction:
    """A program for a problem, and the result of running it: ``met`` are the problems that it had, ``error`` what
    ended it.  ``path`` is where it was written, once it was; ``issue`` is the file of the text for an issue tracker."""

    problem: RecordedProblem
    program: MinimalProgram
    status: ReproStatus
    met: tuple[RecordedProblem, ...] = ()
    error: str = ""
    path: str | None = None
    issue: str | None = None


def reproduce(
    problem: RecordedProblem,
    explanation: Explanation,
    files: SourceFiles,
    rules: Library,
    name: str,
    text_of: Callable[[RecordedProblem, MinimalProgram, Explanation], str],
) -> Reproduction:
    """Makes programs for a problem and runs each as a file of that name.  Raises NotReproducible where none can be
    made."""
    tried: list[Reproduction] = []
    for program in _programs(problem, explanation, files):
        if find_spec("torch") is None:
            return Reproduction(problem, program, ReproStatus.NOT_RUN)
        again = run_again(name, text_of(problem, program, explanation), rules)
        tried.append(_outcome(problem, program, again))
        if tried[-1].status is ReproStatus.REPRODUCED and not tried[-1].error:
            return tried[-1]
    order = list(ReproStatus)
    return min(tried, key=lambda one: order.index(one.status))


def _outcome(problem: RecordedProblem, program: MinimalProgram, again: SecondRun) -> Reproduction:
    met = tuple(again.problems or ())
    is_same = any(one.is_same(problem) for one in met)
    # An error is what was to be reproduced, or comes of the stand-ins.
    expected = is_same and (problem.kind is ProblemKind.FAILURE or problem.verdict is Verdict.RAISES)
    if is_same:
        status = ReproStatus.REPRODUCED
    elif again.status is None:
        status = ReproStatus.TIMED_OUT
    else:
        status = ReproStatus.FAILED if again.status else ReproStatus.DIFFERENT
    return Reproduction(problem, program, status, met, "" if expected else again.error)


def _programs(problem: RecordedProblem, explanation: Explanation, files: SourceFiles) -> Iterator[MinimalProgram]:
    """The programs to try, from the innermost function outwards."""
    if not problem.way:
        raise NotReproducible(Obstacle.NO_FUNCTION)
    made: list[MinimalProgram] = []
    declined = None
    for at in problem.way:
        for plan in _TWICE if problem.kind is ProblemKind.RECOMPILES else _ONCE:
            try:
                program = minimal_program(problem, at, explanation, files, plan)
            except NotReproducible as error:
                declined = declined or error
                break
            if program not in made:
                made.append(program)
                yield program
            if len(made) == _MOST_PROGRAMS:
                return
    if not made and declined:
        raise declined
