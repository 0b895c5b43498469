"""All effects of a call are in its result."""

import pytest

from breakscan.prove.call_result import NO_GRADIENT, CallResult, result_of
from breakscan.prove.equal import Change, Expected, Part
from breakscan.prove.state import StateSnapshot
from breakscan.prove.torch_state import higher_precision

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch


def _step(factor: float, backward: bool, is_detached: bool = True) -> CallResult:
    """A training step that runs the backward pass itself, where the loss is detached."""
    torch.manual_seed(0)
    fc = torch.nn.Linear(2, 2)

    def step(x: torch.Tensor) -> torch.Tensor:
        loss: torch.Tensor = fc(x).mean() * factor
        if not is_detached:
            return loss
        loss.backward()
        return loss.detach() / factor

    x = torch.ones(3, 2)
    return result_of(lambda: step(x), backward, [StateSnapshot({"": step})])


@pytest.mark.parametrize("eager", [True, False], ids=["eager", "compiled"])
def test_gradients_of_a_backward_pass_inside_the_call_are_compared(eager: bool) -> None:
    one = _step(1.0, backward=True)
    assert one.no_backward == NO_GRADIENT
    # Compiled code runs no backward pass of ours where the program runs none.
    same, other = (_step(factor, backward=eager) for factor in (1.0, 2.0))
    assert not Expected([one]).differences([same], eager)
    found = Expected([one]).differences([other], eager)
    assert {(one.part, one.change, one.path) for one in found} == {
        (Part.GRADIENT, Change.ERROR, ":fc.weight"),
        (Part.GRADIENT, Change.ERROR, ":fc.bias"),
    }


def test_without_a_backward_pass_compiled_code_need_not_have_gradients() -> None:
    one, other = (_step(1.0, backward, is_detached=False) for backward in (True, False))
    assert one.gradients
    assert not other.gradients
    assert not Expected([one]).differences([other], eager=False)
    assert Expected([one]).differences([other], eager=True)


def test_shared_memory_strides_and_types_are_in_a_result() -> None:
    x = torch.ones(2, 3)
    result = result_of(lambda: (x.T, [x.flatten(), 2.0], id(x), {"b": None}), False, [StateSnapshot({"x": x})])
    assert result.aliases == {"output 0": "x", "output 1[0]": "x"}
    assert result.strides == {"output 0": "[1, 3]", "output 1[0]": "[1]"}
    assert result.others == {
        "output": "tuple",
        "output 0": "",
        "output 1": "list",
        "output 1[0]": "",
        "output 1[1]": "float",
        "output 2": "id(x)",
        "output 3": "dict of 'b'",
        "output 3['b']": "None",
    }
    fresh = result_of(lambda: ((y := x * 2), y.T), False, [StateSnapshot({"x": x})])
    assert fresh.aliases == {"output 1": "output 0"}
    inferred = result_of(torch.inference_mode()(lambda: x * 2), False, [StateSnapshot({"x": x})])
    assert inferred.changes == {"output.is_inference()": "True"}


@pytest.mark.parametrize(("double", "dtype"), [(True, torch.float64), (False, torch.float32)])
def test_higher_precision_is_without_autocast_and_tf32(double: bool, dtype: torch.dtype) -> None:
    weight, precision = torch.ones(2, 2, dtype=torch.bfloat16, requires_grad=True), torch.backends.mkldnn.matmul
    before, weight.grad = precision.fp32_precision, torch.ones_like(weight)
    with higher_precision([weight, weight.grad], double), torch.autocast("cpu", torch.bfloat16):
        assert (weight @ weight).dtype == dtype
        assert precision.fp32_precision == "ieee"
        (weight * 2).sum().backward()
        assert torch.equal(weight.grad, torch.full((2, 2), 3.0, dtype=dtype))
    assert (weight.dtype, weight.grad.dtype) == (torch.bfloat16, torch.bfloat16)
    assert (precision.fp32_precision, torch.get_default_dtype()) == (before, torch.float32)
    with torch.autocast("cpu", torch.bfloat16):
        assert (torch.ones(2, 2) @ torch.ones(2, 2)).dtype == torch.bfloat16


def test_what_is_passed_has_the_values_of_the_inputs_before_the_call() -> None:
    passed, held, kept, counts = torch.zeros(2), torch.zeros(2), torch.zeros(2), {"n": 0}
    state = StateSnapshot({"state": [passed, held, kept, counts]})
    inputs = StateSnapshot({"args": (passed, kept, counts)})
    # The state of a later call.
    state.values |= {"state[0]": torch.ones(2), "state[2]": torch.ones(2)}
    state.plains["state[3]['n']"] = 1
    found = result_of(lambda: (passed.add_(1), held.add_(1), counts.update(n=1)), False, [state, inputs])
    assert set(found.changed) == {"args[0]", "state[0]", "state[1]", "args[2]['n']", "state[3]['n']"}
