"""``breakscan tune``: what its options ask for, its progress and its exit status."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from breakscan.cli import tune as command
from breakscan.prove.observation import NothingToMeasure
from breakscan.prove.proof import Goal, RunFigures, Tuning
from breakscan.prove.tune import TuneQuestion
from breakscan.prove.worker import UserProgram, WorkerError
from tests.cli.conftest import Run

pytestmark = pytest.mark.torch

FIGURES = RunFigures(1, 0, 0, 2, 1.0, 2.0, 3e-3)
NOTHING = Tuning(
    ("model.py",), {"torch": "2.13.0", "device": "cpu"}, Goal.STEP, 9.0, 3, None, False, FIGURES, None, None, ()
)


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch, folder: Path) -> list[tuple[UserProgram, TuneQuestion]]:
    """The questions to an engine that finds nothing."""
    questions: list[tuple[UserProgram, TuneQuestion]] = []

    def engine(program: UserProgram, question: TuneQuestion, say: Callable[[str], None]) -> Tuning:
        say("3 of 12: trying \x1b[31mdynamic=True")
        questions.append((program, question))
        return NOTHING

    monkeypatch.setattr(command, "find_best", engine)
    return questions


def test_the_options_are_a_question(breakscan: Run, asked: list[Any]) -> None:
    done = breakscan("tune", "model.py")
    assert (done.status, done.out.splitlines()[0]) == (0, "Nothing was tried.")
    assert done.err == "breakscan: 3 of 12: trying ␛[31mdynamic=True\n"
    words = ("--time", "20", "--goal", "memory", "--apply-unseen", "--calls", "2", "model.py", "--apply")
    assert breakscan("tune", *words).status == 0
    (first, usual), (second, given) = asked
    assert (usual.goal, usual.seconds, usual.apply, usual.apply_unseen) == (Goal.STEP, 300.0, False, False)
    assert (given.goal, given.seconds, given.apply, given.apply_unseen) == (Goal.MEMORY, 20.0, True, True)
    assert (first.argv, second.argv, second.calls) == (("model.py",), ("model.py", "--apply"), 2)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--time", "0", "model.py"], "--time"),
        (["--goal", "speed", "model.py"], "--goal"),
        (["missing.py"], "missing.py"),
        (["--format", "sarif", "model.py"], "--format"),
        ([], "PROGRAM"),
    ],
)
def test_wrong_options_run_nothing(breakscan: Run, asked: list[Any], words: list[str], said: str) -> None:
    done = breakscan("tune", *words)
    assert (done.status, done.out, asked) == (2, "", [])
    assert said in done.err


@pytest.mark.parametrize("error", [NothingToMeasure("it compiles nothing"), WorkerError("it compiles nothing")])
def test_what_cannot_be_measured_ends_with_2(
    breakscan: Run, asked: list[Any], monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    def fail(*_: object) -> Tuning:
        raise error

    monkeypatch.setattr(command, "find_best", fail)
    done = breakscan("tune", "model.py")
    assert (done.status, done.out) == (2, "")
    assert done.err.endswith("Error: it compiles nothing\n")


def test_an_interrupt_ends_with_130_and_a_report(
    breakscan: Run, asked: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(command, "find_best", lambda *_: replace(NOTHING, interrupted=True))
    done = breakscan("tune", "model.py")
    assert (done.status, done.out.splitlines()[0]) == (130, "Interrupted. Nothing was tried.")
