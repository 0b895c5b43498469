"""Facts that are written by hand, tried on the installed torch."""

import inspect
from collections.abc import Callable
from typing import Any

import pytest

from breakscan.rulebook.torch_facts.not_measured import INPLACE_AT, ONLY_ANSWERS, RETURN_THE_MODULE

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch


@pytest.mark.parametrize("name", sorted(RETURN_THE_MODULE))
def test_these_methods_say_that_they_return_the_module(name: str) -> None:
    annotation = inspect.signature(getattr(torch.nn.Module, name)).return_annotation
    # ``to`` has overloads that say so.
    assert name == "to" or str(annotation).rpartition(".")[2] in ("~T", "T", "Self")


def _called(name: str) -> Callable[..., Any]:
    found: Any = torch
    for part in name.split(".")[1:]:
        found = getattr(found, part)
    return found  # type: ignore[no-any-return]


ANSWERED_FOR = {
    "torch.Size": ((2,),),
    "torch.can_cast": (torch.float32, torch.int64),
    "torch.device": ("cpu",),
    "torch.finfo": (torch.float32,),
    "torch.from_numpy": (torch.ones(2).numpy(),),
    "torch.iinfo": (torch.int64,),
    "torch.is_storage": (torch.ones(2),),
    "torch.is_tensor": (torch.ones(2),),
    "torch.promote_types": (torch.float32, torch.int64),
    "torch.result_type": (torch.ones(2), 1),
}


@pytest.mark.parametrize("name", sorted(ONLY_ANSWERS))
def test_these_functions_only_answer(name: str) -> None:
    def state() -> tuple[Any, ...]:
        modes = torch.is_grad_enabled(), torch.is_inference_mode_enabled(), torch.get_default_dtype()
        return torch.get_rng_state().tolist(), modes

    given = ANSWERED_FOR.get(name, ())
    versions = [one._version for one in given if isinstance(one, torch.Tensor)]
    before = state()
    _called(name)(*given)
    assert state() == before
    assert [one._version for one in given if isinstance(one, torch.Tensor)] == versions


def test_the_positions_of_inplace() -> None:
    found = {}
    for name, function in vars(torch.nn.functional).items():
        if not callable(function) or name.startswith("_"):
            continue
        try:
            parameters = list(inspect.signature(function).parameters)
        except (TypeError, ValueError):
            continue
        if "inplace" in parameters:
            found[name] = parameters.index("inplace")
    assert found == INPLACE_AT
