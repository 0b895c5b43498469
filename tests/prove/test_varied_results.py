"""How the results of varied calls are compared."""

from __future__ import annotations

from pathlib import Path

import pytest

from breakscan.fix.result import EXCEPTIONS, Effect
from breakscan.prove.call_result import CallResult
from breakscan.prove.equal import Change, Expected, Part, ResultDifference
from breakscan.prove.probe import is_stated
from breakscan.prove.varied_calls import is_raised, varied_differences

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch


def raised(error: str, *at: tuple[str, int]) -> CallResult:
    return CallResult(error=error, raised_at=list(at))


def test_only_what_the_program_itself_raises_is_a_result(tmp_path: Path) -> None:
    path = tmp_path / "net.py"
    path.write_text("y = x @ x\nraise ValueError\nassert y\n", encoding="utf-8")
    assert [is_raised(raised("ValueError", (str(path), line)), {str(path)}) for line in (1, 2, 3)] == [
        False,
        True,
        True,
    ]
    assert not is_raised(raised("ValueError", (str(path), 2)), {str(tmp_path / "other.py")})
    assert not is_raised(CallResult(), {str(path)})


def test_after_the_same_exception_nothing_else_counts() -> None:
    def result(error: str | None, state: float) -> CallResult:
        return CallResult(error=error, changed={"self.total": torch.tensor(state)}, rng={"torch": str(state)})

    assert varied_differences(Expected([result("ValueError", 1.0)]), result("ValueError", 2.0)) == ()
    (other,) = varied_differences(Expected([result("ValueError", 1.0)]), result("IndexError", 1.0))
    assert other.change is Change.RAISES
    other, *_ = varied_differences(Expected([result(None, 1.0)]), result(None, 2.0))
    assert other.part is Part.STATE


@pytest.mark.parametrize(
    ("difference", "effect"),
    [
        (ResultDifference(Part.OUTPUT, Change.ERROR, "output", "1", "2"), Effect.VALUES),
        (ResultDifference(Part.OUTPUT, Change.DTYPE, "output", "int64", "float32"), Effect.DTYPES),
        (ResultDifference(Part.OUTPUT, Change.TEXT, "output", "1", ""), Effect.TYPES),
        (ResultDifference(Part.OUTPUT, Change.TEXT, "output", "1", "2"), Effect.VALUES),
        (ResultDifference(Part.OUTPUT, Change.ALIAS, "output", "args[0]"), Effect.STORAGE),
        (ResultDifference(Part.GRADIENT, Change.NO_BACKWARD), Effect.GRADIENTS),
        (ResultDifference(Part.STATE, Change.TEXT, "self.n", "1", "2"), Effect.STATE),
        (ResultDifference(Part.RANDOM, Change.DRAWN, "torch"), Effect.RANDOM),
    ],
)
def test_a_difference_is_stated_by_an_effect_of_its_kind(difference: ResultDifference, effect: Effect) -> None:
    assert is_stated(difference, {effect})
    assert not is_stated(difference, set(Effect) - {effect})


@pytest.mark.parametrize("effect", [Effect.RAISES, Effect.NO_LONGER_RAISES])
def test_another_exception_is_stated_by_a_new_or_a_missing_one(effect: Effect) -> None:
    difference = ResultDifference(Part.EXCEPTION, Change.RAISES, was="ValueError")
    assert is_stated(difference, {effect})
    assert not is_stated(difference, set(Effect) - EXCEPTIONS)
