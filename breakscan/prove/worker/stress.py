"""Other values for the inputs of a call, of the same shapes and dtypes: those at which rewrites go wrong."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from breakscan.prove.worker.protocol import Stress
from breakscan.prove.worker.state_snapshot import StateSnapshot
from breakscan.prove.worker.tensor_values import digest

if TYPE_CHECKING:
    from torch import Tensor

SEED = 20_000
"""Of the permutation, which is the same in all processes."""


def stressed_values(inputs: StateSnapshot, stress: Stress) -> dict[str, Tensor]:
    """The values that change, by path; none where this stress changes nothing."""
    found: dict[str, Tensor] = {}
    for path, value in inputs.data.items():
        # Classes of inputs hold values, too.
        is_input = path.startswith(("args[", "kwargs["))
        other = stressed(value, stress) if is_input and value.numel() else None
        if other is not None and digest(other) != digest(value):
            found[path] = other
    return found


def stressed(value: Tensor, stress: Stress) -> Tensor | None:
    """Another value for a tensor; None where there is none for its dtype.

    Integers and bools may be indices and masks: with most kinds of stress they stay as they are, so that floating-point
    values reach all of the code.
    """
    import torch

    if stress is Stress.PERMUTED:
        order = torch.randperm(value.numel(), generator=torch.Generator().manual_seed(SEED), device="cpu")
        return value.flatten()[order].view(value.shape)
    if value.dtype is torch.bool:
        return None
    if value.dtype.is_complex:
        parts = _of_floats(torch.view_as_real(value), stress)
        return None if parts is None else torch.view_as_complex(parts)
    return _of_floats(value, stress) if value.dtype.is_floating_point else _of_integers(value, stress)


def _of_floats(value: Tensor, stress: Stress) -> Tensor | None:
    import torch

    # Not every operator knows the narrow types.
    wide = value.to(torch.float64, copy=True)
    if stress is Stress.NEGATED:
        return (-wide).to(value.dtype)
    if stress is Stress.ZERO:
        return torch.zeros_like(wide).to(value.dtype)
    limits = torch.finfo(value.dtype)
    if stress is Stress.EXTREME:
        return _in_turn(wide, (limits.max, limits.min)).to(value.dtype)
    found = wide.flatten()
    if stress is Stress.NAN:
        found[0] = math.nan
    elif stress is Stress.INFINITE:
        found[-1], found[0] = -math.inf, math.inf
    else:
        return None
    return found.view(value.shape).to(value.dtype)


def _of_integers(value: Tensor, stress: Stress) -> Tensor | None:
    import torch

    limits, lowest, highest = torch.iinfo(value.dtype), int(value.min()), int(value.max())
    if stress is Stress.ZERO:
        return torch.zeros_like(value).clamp(lowest, highest)
    if stress is Stress.BELOW:
        return _in_turn(value, (max(min(lowest - 1, -1), limits.min), None))
    if stress is Stress.ABOVE:
        # Far enough for an index, and not so far that a size takes all of the memory.
        return _in_turn(value, (min(max(2 * highest, highest) + 2, limits.max), None))
    return None


def _in_turn(value: Tensor, cycle: Sequence[float | None]) -> Tensor:
    """The elements replaced by these numbers in turn, over and over; with None, an element stays."""
    import torch

    position = torch.arange(value.numel(), device="cpu").view(value.shape) % len(cycle)
    found = value.clone()
    for turn, number in enumerate(cycle):
        if number is not None:
            found[position == turn] = number
    return found
