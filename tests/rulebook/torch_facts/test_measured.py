"""The measured facts hold for calls of the installed torch that the measurement did not make."""

from itertools import product

import pytest

from breakscan.rulebook.torch_facts.operators import DTYPES, Gradient, Often, Shape, operator

ONE_TENSOR = ("abs", "clone", "detach", "exp", "floor", "isnan", "neg", "relu", "sigmoid", "sqrt", "square", "sum")
TWO_TENSORS = ("add", "atan2", "bitwise_and", "div", "eq", "floor_divide", "maximum", "mul", "pow", "sub")

pytestmark = pytest.mark.torch


@pytest.fixture(scope="module")
def torch():
    return pytest.importorskip("torch")


def facts(torch, name: str):
    found = operator(".".join(torch.__version__.split(".")[:2]), f"torch.{name}")
    assert found is not None
    return found


def outcome(function, *given):
    try:
        return function(*given)
    except (RuntimeError, NotImplementedError, TypeError):
        return None


@pytest.mark.parametrize("name", ONE_TENSOR)
def test_dtypes_and_shapes_for_one_tensor(torch, name: str) -> None:
    known = facts(torch, name)
    for dtype in DTYPES:
        given = torch.ones((4, 5), dtype=getattr(torch, dtype))
        result = outcome(getattr(torch, name), given)
        assert (result is None) is (dtype in known.refused), dtype
        if result is not None:
            assert known.results_by_dtype[dtype] == (str(result.dtype).removeprefix("torch."),)
            assert (Shape.ZERO_DIM in (known.plain_shapes or ())) is (result.dim() == 0)
            assert (Shape.FIRST in (known.plain_shapes or ())) is (result.shape == given.shape)
            shared = result.untyped_storage().data_ptr() == given.untyped_storage().data_ptr()
            assert shared is (known.shares_storage is Often.ALWAYS)


@pytest.mark.parametrize("name", TWO_TENSORS)
def test_shapes_for_two_tensors(torch, name: str) -> None:
    known = facts(torch, name)
    for one, other in product(DTYPES, DTYPES):
        given = [torch.ones((4, 5), dtype=getattr(torch, one)), torch.ones((5,), dtype=getattr(torch, other))]
        result = outcome(getattr(torch, name), *given)
        if result is not None:
            assert Shape.BROADCAST in (known.shapes or ())
            assert result.shape == (4, 5)


def test_gradients_of_what_where_does_not_choose(torch) -> None:
    """``torch.where`` sends a gradient of zero to the side that it does not choose."""
    for name, expected in (("sqrt", Gradient.MAY_BE_NAN), ("neg", Gradient.ZERO), ("sin", Gradient.ZERO_IF_FINITE)):
        assert facts(torch, name).gradient is expected
        for value in (0.0, 3.0, float("inf")):
            given = torch.tensor([value], requires_grad=True)
            torch.where(torch.tensor([False]), getattr(torch, name)(given), torch.zeros(1)).sum().backward()
            is_nan = bool(given.grad.isnan().any())
            assert not is_nan or expected is Gradient.MAY_BE_NAN or value == float("inf")
            if name == "sqrt" and value == 0.0:
                assert is_nan


def test_effects(torch) -> None:
    assert facts(torch, "nn.functional.dropout").draws_random is not Often.NEVER
    assert facts(torch, "gather").raises_for_values is Often.SOMETIMES
    assert facts(torch, "relu_").writes == {0}
    assert facts(torch, "masked_select").reads_values is Often.ALWAYS
    assert facts(torch, "index_select").elementwise is False
    assert Shape.FIRST not in (facts(torch, "index_select").shapes or ())
    assert Shape.FIRST not in (facts(torch, "clamp").shapes or ())
