"""Other values for inputs: of the same shapes and dtypes, and put back afterwards."""

from __future__ import annotations

import contextlib
import time

import pytest

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch

from breakscan.prove.protocol import Stress  # noqa: E402
from breakscan.prove.state import StateSnapshot  # noqa: E402
from breakscan.prove.stress import TimeLimitReached, stressed, stressed_values, time_limit  # noqa: E402  # noqa: E402

FLOATS = [torch.float64, torch.float32, torch.float16, torch.bfloat16, torch.float8_e4m3fn, torch.complex64]


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("stress", [one for one in Stress if one not in (Stress.BELOW, Stress.ABOVE)])
def test_floats_keep_shape_and_dtype(dtype: torch.dtype, stress: Stress) -> None:
    value = torch.tensor([[1.0, 2.0, -3.0], [4.0, 0.0, 6.0]], dtype=torch.float32).to(dtype)
    other = stressed(value, stress)
    assert other is not None
    assert (other.shape, other.dtype) == (value.shape, dtype)
    parts = torch.view_as_real(other) if dtype.is_complex else other.double()
    if stress is Stress.NAN:
        assert int(parts.isnan().sum()) == 1
    elif stress is Stress.EXTREME:
        limits = torch.finfo(dtype)
        assert set(parts.flatten().tolist()) == {limits.max, limits.min}
    elif stress is not Stress.INFINITE:
        assert bool(parts.isfinite().all())


def test_integers_stay_within_the_range_that_was_seen() -> None:
    for low, zero in ((0, 0), (3, 3), (-7, 0)):
        value = torch.arange(low, low + 9)
        permuted = stressed(value, Stress.PERMUTED)
        assert permuted is not None
        assert not torch.equal(permuted, value)
        assert torch.equal(permuted.sort().values, value)
        zeros = stressed(value, Stress.ZERO)
        assert zeros is not None
        assert set(zeros.tolist()) == {zero}
    for stress in (Stress.NEGATED, Stress.NAN, Stress.INFINITE, Stress.EXTREME):
        assert stressed(torch.arange(9), stress) is None


@pytest.mark.parametrize(
    ("dtype", "values", "below", "above"),
    [
        (torch.int64, [3, 9, 3], [-1, 9, -1], [20, 9, 20]),
        (torch.int64, [-7, -3, -7], [-8, -3, -8], [-1, -3, -1]),
        (torch.int8, [100, 127, 100], [-1, 127, -1], [127, 127, 127]),
        (torch.uint8, [1, 2, 1], [0, 2, 0], [6, 2, 6]),
    ],
)
def test_some_integers_leave_the_range_and_stay_within_the_dtype(
    dtype: torch.dtype, values: list[int], below: list[int], above: list[int]
) -> None:
    for stress, expected in ((Stress.BELOW, below), (Stress.ABOVE, above)):
        other = stressed(torch.tensor(values, dtype=dtype), stress)
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
    values = stressed_values(inputs, Stress.NAN)
    assert values.keys() == {"args[0]", "args[5].x", "kwargs['y'][0]"}
    with inputs.holding(values):
        inputs.restore()
        assert bool(x.isnan().any())
        assert bool((weight == 1).all())
    inputs.restore()
    assert bool((x == 1).all())
    assert stressed_values(inputs, Stress.PERMUTED) == {}, "there is no other order"


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
