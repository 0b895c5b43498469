"""Varied calls: other values for inputs, and how their results are compared."""

import contextlib
import time
from pathlib import Path

import pytest

from breakscan.fix.result import EXCEPTIONS, Effect
from breakscan.prove.call_result import CallResult
from breakscan.prove.equal import Change, Expected, Part, ResultDifference
from breakscan.prove.probe import is_stated
from breakscan.prove.protocol import Variation
from breakscan.prove.state import StateSnapshot
from breakscan.prove.varied_calls import (
    VALUES,
    TimeLimitReached,
    is_raised,
    other_numbers,
    other_values,
    time_limit,
    varied_differences,
    varied_values,
)

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch
FLOATS = [torch.float64, torch.float32, torch.float16, torch.bfloat16, torch.float8_e4m3fn, torch.complex64]


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("kind", VALUES)
def test_floats_keep_shape_and_dtype(dtype: torch.dtype, kind: Variation) -> None:
    value = torch.tensor([[1.0, 2.0, -3.0], [4.0, 0.0, 6.0]], dtype=torch.float32).to(dtype)
    other = other_values(value, kind)
    assert other is not None
    assert (other.shape, other.dtype) == (value.shape, dtype)
    parts = torch.view_as_real(other) if dtype.is_complex else other.double()
    if kind is Variation.NAN:
        assert int(parts.isnan().sum()) == 1
    elif kind is Variation.EXTREME:
        limits = torch.finfo(dtype)
        assert set(parts.flatten().tolist()) == {limits.max, limits.min}
    elif kind is not Variation.INFINITE:
        assert bool(parts.isfinite().all())


def test_integers_stay_within_the_range_that_was_seen() -> None:
    for low, zero in ((0, 0), (3, 3), (-7, 0)):
        value = torch.arange(low, low + 9)
        permuted = other_values(value, Variation.PERMUTED)
        assert permuted is not None
        assert not torch.equal(permuted, value)
        assert torch.equal(permuted.sort().values, value)
        zeros = other_values(value, Variation.ZERO)
        assert zeros is not None
        assert set(zeros.tolist()) == {zero}
    for kind in (Variation.NEGATED, Variation.NAN, Variation.INFINITE, Variation.EXTREME):
        assert other_values(torch.arange(9), kind) is None
    centred = other_values(torch.arange(4, 9), Variation.NEGATED, "args[0]")
    assert centred is not None
    assert centred.tolist() == [-2, -1, 0, 1, 2]


def test_rounded_values_have_halves_and_masks_are_set_as_a_whole() -> None:
    for kind in (Variation.COARSE, Variation.SHIFTED):
        found = other_values(torch.tensor([0.4375, -0.0625]), kind)
        assert found is not None
        assert found.tolist() == [0.5, 0.0]
    mask = torch.tensor([True, False])
    masks = [other_values(mask, kind) for kind in (Variation.BELOW, Variation.ABOVE, Variation.ZERO)]
    assert [one if one is None else one.tolist() for one in masks] == [[False, False], [True, True], None]


@pytest.mark.parametrize(
    ("dtype", "values", "below", "above"),
    [
        (torch.int64, [3, 9, 3], [2, 9, 2], [10, 9, 10]),
        (torch.int64, [-7, -3, -7], [-8, -3, -8], [-2, -3, -2]),
        (torch.int8, [100, 127, 100], [99, 127, 99], [127, 127, 127]),
        (torch.uint8, [1, 2, 1], [0, 2, 0], [3, 2, 3]),
    ],
)
def test_some_integers_leave_the_range_and_stay_within_the_dtype(
    dtype: torch.dtype, values: list[int], below: list[int], above: list[int]
) -> None:
    for kind, expected in ((Variation.BELOW, below), (Variation.ABOVE, above)):
        other = other_values(torch.tensor(values, dtype=dtype), kind)
        assert other is not None
        assert (other.tolist(), other.dtype) == (expected, dtype)


class Batch:
    scale = torch.ones(2)

    def __init__(self) -> None:
        self.x = torch.ones(2)


def test_only_inputs_change_and_they_are_put_back() -> None:
    x, weight = torch.ones(3, requires_grad=True), torch.nn.Parameter(torch.ones(3))
    x.grad = torch.ones(3)
    given = {"args": (x, weight, torch.Generator(), 3.0, torch.zeros(0), Batch()), "kwargs": {"y": [torch.zeros(2)]}}
    inputs = StateSnapshot(given, {})
    values = varied_values(inputs, Variation.NAN)
    assert values.keys() == {"args[0]", "args[5].x", "kwargs['y'][0]"}
    with inputs.holding(values):
        inputs.restore()
        assert bool(x.isnan().any())
        assert bool((weight == 1).all())
    inputs.restore()
    assert bool((x == 1).all())
    assert varied_values(inputs, Variation.PERMUTED) == {}, "there is no other order"


def test_tensors_of_one_size_change_together() -> None:
    ids, labels = torch.arange(6).view(3, 2), torch.arange(3)
    inputs = StateSnapshot({"args": (ids, labels, torch.zeros(5)), "kwargs": {}}, {})

    def sizes(kind: Variation, at: str) -> dict[str, list[int]]:
        return {path: list(value.shape) for path, value in varied_values(inputs, kind, at).items()}

    assert sizes(Variation.MORE, "0") == {"args[0]": [4, 2], "args[1]": [4]}
    assert sizes(Variation.MORE, "0 args[1]") == {"args[0]": [4, 2]}
    assert sizes(Variation.ONE, "0") == {"args[0]": [1, 2], "args[1]": [1]}
    assert sizes(Variation.EMPTY, "0") == {"args[0]": [0, 2], "args[1]": [0]}
    assert sizes(Variation.LESS, "1") == {"args[0]": [3, 1]}
    assert varied_values(inputs, Variation.MORE, "0")["args[1]"].tolist() == [0, 1, 2, 0]


def test_other_numbers() -> None:
    assert other_numbers(True) == [False]
    assert other_numbers(0) == [1, -1, 10]
    assert other_numbers(2.0) == [1.25, 0.0, -2.0]


def test_what_never_ends_is_stopped() -> None:
    def endless() -> None:
        while True:
            with contextlib.suppress(Exception):
                time.sleep(0.01)

    with pytest.raises(TimeLimitReached), time_limit(0.1):
        endless()
    with time_limit(0.1):
        pass
    time.sleep(0.2)


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
    # The program goes on after one that a later call of it raises.
    other, *_ = varied_differences(Expected([result("ValueError", 1.0)]), result("ValueError", 2.0), stays=True)
    assert other.part is Part.STATE
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
