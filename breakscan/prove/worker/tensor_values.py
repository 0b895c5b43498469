"""The values of tensors: copies that any process can read, and digests of them."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from breakscan.source.cores import usable_cores

if TYPE_CHECKING:
    from torch import Tensor

LARGE = 2**24
"""Bytes from which on several threads hash."""


def plain_copy(tensor: Tensor) -> Tensor:
    """The values of a tensor of any kind, as a dense tensor on the CPU with memory of its own."""
    import torch

    with torch.no_grad():
        held = tensor.detach()
        full = getattr(held, "full_tensor", None)
        if full is not None:
            held = full()
        if held.layout is not torch.strided:
            held = held.to_dense()
        if held.is_quantized:
            held = held.dequantize()
        copy = torch.empty(held.shape, dtype=held.dtype, device="cpu")
        return copy.copy_(held)


def digest(value: Tensor) -> str:
    """Equal for values that are equal bit by bit."""
    hashed = hashlib.blake2b(f"{tuple(value.shape)} {value.dtype}".encode(), digest_size=16)
    if value.numel():
        hashed.update(_bits(value).numpy().data)
    return hashed.hexdigest()


def digests(values: Mapping[str, Tensor]) -> dict[str, str]:
    """The digest of each value."""
    if sum(value.nbytes for value in values.values()) < LARGE:
        return {path: digest(value) for path, value in values.items()}
    # Hashing releases the interpreter lock.
    with ThreadPoolExecutor(usable_cores()) as threads:
        return dict(zip(values, threads.map(digest, values.values()), strict=True))


def same_bits(one: Tensor, other: Tensor) -> bool:
    """Whether two tensors on the CPU have the same shape, the same dtype and the same bits."""
    import torch

    if (one.shape, one.dtype) != (other.shape, other.dtype):
        return False
    return not one.numel() or torch.equal(_bits(one), _bits(other))


def _bits(value: Tensor) -> Tensor:
    """The bytes of a tensor that is not empty."""
    import torch

    return value.contiguous().flatten().view(torch.uint8)


def equal(one: Tensor, other: Tensor) -> bool:
    """Whether two tensors have the same dtype and the same values."""
    import torch

    return one is other or (one.dtype == other.dtype and torch.equal(one, other))


def shape_of(value: Tensor) -> str:
    """``8×16``."""
    return "×".join(map(str, value.shape)) or "()"


def write_values(tensor: Tensor, value: Tensor) -> None:
    """Writes values into a tensor in place."""
    import torch

    # An expanded tensor has one element for many: writing one of them writes all.
    for dim, (size, stride) in enumerate(zip(tensor.shape, tensor.stride(), strict=True)):
        if stride == 0 and size > 1:
            tensor, value = tensor.narrow(dim, 0, 1), value.narrow(dim, 0, 1)
    if tensor.is_inference():
        with torch.inference_mode():
            tensor.copy_(value)
    else:
        tensor.copy_(value)
