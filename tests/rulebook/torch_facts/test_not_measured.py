"""Facts that are written by hand, tried on the installed torch."""

from __future__ import annotations

import importlib
import inspect
import warnings
from collections.abc import Callable
from typing import Any

import pytest

from breakscan.model.torch_versions import PINNED, minor_version
from breakscan.rulebook.torch_facts.not_measured import (
    ATTRIBUTES_THAT_RAISE,
    ATTRIBUTES_WITHOUT_GRADIENT,
    INPLACE_AT,
    KEEPS_NO_RESULT,
    KEEPS_THE_GRAD_MODE,
    ONLY_ANSWERS,
    ONLY_CALLS_THE_FUNCTION,
    READS_CODE,
    RETURN_THE_MODULE,
    SAVES_NO_OPERAND,
    SEES_NO_OPERATION,
    SEES_OPERATIONS,
    SETTINGS,
    SETTINGS_OF_THE_COMPILER,
)
from breakscan.rulebook.torch_facts.table import load_api

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch


@pytest.mark.skipif(
    minor_version(torch.__version__) != minor_version(PINNED), reason="the facts are of the pinned torch"
)
def test_the_attributes_that_raise() -> None:
    shapes = [(), (3,), (2, 3), (2, 2, 2), (0,)]
    tensors = [torch.ones(shape, dtype=dtype) for shape in shapes for dtype in (torch.float32, torch.bool)]
    tensors.append(torch.ones(3, requires_grad=True) * 2)

    def raises(tensor: torch.Tensor, name: str) -> bool:
        try:
            getattr(tensor, name)
        except Exception:
            return True
        return False

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = {
            name
            for name in load_api(minor_version(PINNED)).attributes
            if any(raises(tensor, name) for tensor in tensors)
        }
    assert found == ATTRIBUTES_THAT_RAISE


@pytest.mark.parametrize("name", sorted(ATTRIBUTES_WITHOUT_GRADIENT))
def test_no_gradient_goes_through_these_attributes(name: str) -> None:
    leaf = torch.ones(2, 2, requires_grad=True)
    leaf.sum().backward()
    for tensor in (leaf, leaf * 2):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            value = getattr(tensor, name)
        assert not getattr(value, "requires_grad", False)


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


@pytest.mark.parametrize("name", sorted(KEEPS_THE_GRAD_MODE))
def test_gradients_are_recorded_as_around_these_context_managers(name: str) -> None:
    is_autocast = name in ("torch.autocast", "torch.amp.autocast")
    given: tuple[Any, ...] = ("cpu",) if is_autocast or name == "torch.device" else ()
    if name.endswith("record_function"):
        given = ("part",)
    elif name.endswith("sdpa_kernel"):
        given = (torch.nn.attention.SDPBackend.MATH,)
    elif name == "torch.cuda.device":
        given = (-1,)
    elif name == "torch.cuda.stream":
        given = (None,)
    for mode in (True, False):
        with torch.set_grad_enabled(mode), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with _called(name)(*given):
                assert torch.is_grad_enabled() is mode


@pytest.mark.parametrize("name", sorted(KEEPS_NO_RESULT))
def test_a_result_that_is_not_kept_may_be_changed_in_place(name: str) -> None:
    given = torch.rand(3, 3).mul_(0.5).requires_grad_()
    more: dict[str, tuple[Any, ...]] = {
        **dict.fromkeys(("add", "div", "matmul", "mm", "mul", "sub"), (given,)),
        "clamp": (0.1, 0.4),
        "cumsum": (0,),
        "expand": (3, 3),
        "lerp": (given, 0.5),
        "masked_fill": (given > 0.2, 1),
        "permute": (1, 0),
        "roll": (1,),
        "swapaxes": (0, 1),
        "to": (torch.float64,),
        "transpose": (0, 1),
        "where": (given > 0.2, given),
    }
    method = getattr(torch.Tensor, name, None) or getattr(torch.nn.functional, name)
    result = method(given, *more.get(name, ()))
    with torch.no_grad():
        result.add_(1)
    if result.requires_grad:
        result.sum().backward()


@pytest.mark.parametrize("name", sorted({*READS_CODE, *ONLY_CALLS_THE_FUNCTION, *SEES_OPERATIONS, *SEES_NO_OPERATION}))
def test_what_sees_code_or_operations_exists(name: str) -> None:
    try:
        importlib.import_module(name)
    except ImportError:
        assert callable(_called(name))


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


@pytest.mark.parametrize("name", sorted(SETTINGS))
def test_these_settings_are_no_functions(name: str) -> None:
    assert not callable(_called(name))


@pytest.mark.parametrize("name", sorted(SETTINGS_OF_THE_COMPILER))
def test_these_modules_hold_only_settings(name: str) -> None:
    module: Any = importlib.import_module(name)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert module._config
        assert not [one for one in module._config if callable(getattr(module, one))]


@pytest.mark.parametrize("name", sorted(SAVES_NO_OPERAND))
def test_an_operand_that_is_not_saved_may_be_changed_in_place(name: str) -> None:
    leaf = torch.rand(2, 3, requires_grad=True)
    given = leaf * 1
    more: dict[str, tuple[Any, ...]] = {
        "expand": (2, 3),
        "new_zeros": (2,),
        "permute": (1, 0),
        "reshape": (6,),
        "to": (torch.float64,),
        "transpose": (0, 1),
        "view": (6,),
    }
    if name == "copy_":
        result = torch.zeros(2, 3).copy_(given)
    elif name in ("ones_like", "zeros_like"):
        result = getattr(torch, name)(given)
    elif name == "stack":
        result = torch.stack([given, given])
    else:
        result = getattr(given, name)(*more.get(name, ()))
    with torch.no_grad():
        given.add_(1)
    if result.requires_grad:
        result.sum().backward()
    else:
        assert not result.is_floating_point() or name in ("detach", "new_zeros", "ones_like", "zeros_like")
