"""Facts that are written by hand, tried on the installed torch."""

from __future__ import annotations

import inspect
import warnings

import pytest

from breakscan.torch_facts.not_measured import (
    ATTRIBUTES_THAT_RAISE,
    ATTRIBUTES_WITHOUT_GRADIENT,
    RETURN_THE_MODULE,
)
from breakscan.torch_facts.table import load_api
from breakscan.torch_versions import PINNED, minor_version

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
