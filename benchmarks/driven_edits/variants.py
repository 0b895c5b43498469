"""Unusual variants of a driver's inputs: other dtypes, values, layouts, sizes and gradients, shared tensors."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._pytree import tree_flatten, tree_unflatten

from benchmarks.rewrite_fuzzer.inputs import DTYPES, INFINITE

Change = Callable[[Tensor], Tensor]


def _of_floats(change: Change) -> Change:
    return lambda one: change(one) if one.is_floating_point() else one


def _of_integers(change: Change) -> Change:
    return lambda one: one if one.is_floating_point() or one.is_complex() else change(one)


def _some(value: float) -> Change:
    """A third of the elements, the first among them, have a value."""

    def change(one: Tensor) -> Tensor:
        changed = one.detach().clone(memory_format=torch.contiguous_format)
        changed.view(-1)[:: max(1, changed.numel() // 3)] = value
        return changed

    return _of_floats(change)


def _non_contiguous(one: Tensor) -> Tensor:
    if one.dim() < 2:
        return torch.stack([one, one], -1)[..., 0]
    return one.transpose(-1, -2).contiguous().transpose(-1, -2)


def _leaf(one: Tensor) -> Tensor:
    return one.detach().clone().requires_grad_()


def _then_leaf(change: Change) -> Change:
    return _of_floats(lambda one: _leaf(change(one)))


CHANGES: Mapping[str, Change] = {
    "as given": lambda one: one,
    "gradients": _of_floats(_leaf),
    **{name: _of_floats(partial(Tensor.to, dtype=getattr(torch, name))) for name in DTYPES if name != "float32"},
    "integers int32": _of_integers(lambda one: one.int()),
    "integers bool": _of_integers(lambda one: one.bool()),
    "integers zero": _of_integers(torch.zeros_like),
    "integers one": _of_integers(torch.ones_like),
    "nan": _some(float("nan")),
    "infinite": _some(INFINITE),
    "negative infinite": _some(-INFINITE),
    "zero": _of_floats(torch.zeros_like),
    "negative zero": _of_floats(lambda one: -torch.zeros_like(one)),
    "negative": _of_floats(torch.neg),
    "large": _of_floats(lambda one: one * 1e30),
    "empty": lambda one: one[:0] if one.dim() else one,
    "0-d": _of_floats(lambda one: one.flatten()[0] if one.numel() else one),
    "one row": lambda one: one[:1] if one.dim() else one,
    "non-contiguous": _non_contiguous,
    "non-contiguous gradients": _of_floats(lambda one: _non_contiguous(one).detach().requires_grad_()),
    "nan gradients": _then_leaf(_some(float("nan"))),
    "zero gradients": _then_leaf(torch.zeros_like),
}
ALWAYS = ("as given", "gradients")
"""The variants that differ in the gradient mode, if in nothing else."""
SHARED = "one tensor for all that are alike"
FIRST = "{} first tensor"
"""Varies the first tensor alone: what checks its other arguments would raise otherwise."""
VARIANTS = (*CHANGES, SHARED, *(FIRST.format(name) for name in CHANGES if name != "as given"))


def varied(arguments: Any, variant: str) -> Any:
    """The arguments, in which each tensor is changed. None if an earlier variant gives the same."""
    leaves, structure = tree_flatten(arguments)
    places = [place for place, one in enumerate(leaves) if isinstance(one, Tensor)]
    changed = list(leaves)
    if variant == SHARED:
        seen: dict[Any, Tensor] = {}
        for place in places:
            changed[place] = seen.setdefault((leaves[place].shape, leaves[place].dtype), leaves[place])
    else:
        name = variant.removesuffix(FIRST.format(""))
        if name != variant:
            places = places[:1] if len(places) > 1 else []
        for place in places:
            changed[place] = CHANGES[name](leaves[place])
    is_same = all(one is other for one, other in zip(leaves, changed, strict=True))
    return None if is_same and variant not in ALWAYS else tree_unflatten(changed, structure)


def vary_models(models: Iterable[nn.Module], variant: str) -> None:
    """Gives models the dtype of a variant of all tensors."""
    dtype = getattr(torch, variant, None)
    if isinstance(dtype, torch.dtype) and dtype.is_floating_point:
        for model in models:
            model.to(dtype)
