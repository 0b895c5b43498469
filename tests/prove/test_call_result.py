"""All effects of a call are in its result."""

from __future__ import annotations

import pytest

from breakscan.prove.call_result import NO_GRADIENT, CallResult, result_of
from breakscan.prove.equal import Change, Expected, Part
from breakscan.prove.state import StateSnapshot

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
