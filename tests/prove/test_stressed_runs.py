"""When a call with other inputs shows that a change behaves as the unchanged program does."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from pathlib import Path

import pytest

from breakscan.fix.support.difference import EXCEPTIONS, Effect
from breakscan.prove.call_result import CallResult
from breakscan.prove.equal import Change, Part, ResultDifference
from breakscan.prove.probe import ReplacedTest, agrees, is_stated
from breakscan.prove.protocol import ExpressionSpan

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch


def returned(*values: float) -> CallResult:
    return CallResult(outputs={"output": torch.tensor(values)}, others={"output": ""})


def raised(error: str, text: str = "no") -> CallResult:
    return CallResult(error=error, error_text=text)


ONE = returned(1.0, 2.0)
NAN = float("nan")
STATED = frozenset({Effect.RAISES})


@pytest.mark.parametrize(
    ("one", "eager", "compiled", "effects", "expected"),
    [
        (ONE, ONE, returned(1.00001, 2.0), (), True),
        (ONE, returned(1.0, 2.1), ONE, (), False),
        (ONE, ONE, returned(1.0, 2.1), (), False),
        (ONE, ONE, raised("ValueError"), STATED, False),
        # All code computes the same of these values.
        (returned(NAN, 0.0), returned(NAN, 0.0), returned(NAN, 0.0), (), False),
        (raised("ValueError"), raised("ValueError"), raised("ValueError"), (), True),
        (raised("ValueError"), raised("ValueError"), raised("ValueError", "nan"), (), False),
        (raised("ValueError"), raised("ValueError"), raised("RuntimeError"), (), False),
        (raised("ValueError"), raised("ValueError"), raised("RuntimeError"), STATED, True),
        (raised("ValueError"), raised("ValueError"), ONE, STATED, True),
    ],
)
def test_eager_and_compiled_results_must_agree(
    one: CallResult, eager: CallResult, compiled: CallResult, effects: Collection[Effect], expected: bool
) -> None:
    assert agrees(one, eager, compiled, effects, draws_random=False) is expected


def test_other_random_numbers_show_nothing_unless_the_call_raises() -> None:
    assert not agrees(ONE, ONE, ONE, (), draws_random=True)
    assert agrees(*[raised("ValueError")] * 3, (), draws_random=True)


def test_an_exception_from_elsewhere_does_not_show_what_follows_a_test(tmp_path: Path) -> None:
    path = str(tmp_path / "net.py")
    test = ReplacedTest("net.py", path, "x > 0", ExpressionSpan(3, 7, 3, 12), range(3, 5), frozenset({True}))
    assert test.is_shown_by(ONE)
    for line, expected in ((3, True), (4, True), (9, False)):
        assert test.is_shown_by(replace(raised("ValueError"), raised_at=[(path, line)])) is expected


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
