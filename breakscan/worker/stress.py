"""Other values for the inputs of a call, of the same shapes and dtypes: those at which rewrites go wrong."""

from __future__ import annotations

from typing import TYPE_CHECKING

from breakscan.worker.protocol import Stress
from breakscan.worker.state_snapshot import StateSnapshot
from breakscan.worker.tensor_values import digest

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

    Integers and bools may be indices and masks: they are only permuted, and integers are zero within the range that was
    seen.
    """
    import torch

    if stress is Stress.PERMUTED:
        order = torch.randperm(value.numel(), generator=torch.Generator().manual_seed(SEED), device="cpu")
        return value.flatten()[order].view(value.shape)
    if value.dtype.is_floating_point:
        return _of_floats(value, stress)
    if value.dtype.is_complex:
        parts = _of_floats(torch.view_as_real(value), stress)
        return torch.view_as_complex(parts)
    if stress is Stress.ZERO and value.dtype is not torch.bool:
        return torch.zeros_like(value).clamp(value.min(), value.max())
    return None


def _of_floats(value: Tensor, stress: Stress) -> Tensor:
    import torch

    if stress is Stress.NEGATED:
        return (-value.double()).to(value.dtype)
    if stress is Stress.EXTREME:
        limits = torch.finfo(value.dtype)
        is_even = torch.arange(value.numel(), device="cpu").view(value.shape) % 2 == 0
        # Not every operator knows the narrow types.
        highest, lowest = (
            torch.full(value.shape, end, dtype=torch.float64, device="cpu") for end in (limits.max, limits.min)
        )
        return torch.where(is_even, highest, lowest).to(value.dtype)
    constant = {Stress.ZERO: 0.0, Stress.NAN: float("nan"), Stress.INFINITE: float("inf")}[stress]
    return torch.full(value.shape, constant, dtype=torch.float64, device="cpu").to(value.dtype)
