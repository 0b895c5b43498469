"""The values of tensors: copies that any process can read, and digests of them."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Tensor


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
    import torch

    whole = value.contiguous()
    hashed = hashlib.blake2b(f"{tuple(whole.shape)} {whole.dtype}".encode(), digest_size=16)
    if whole.numel():
        hashed.update(whole.flatten().view(torch.uint8).numpy().data)
    return hashed.hexdigest()


def digests(values: Mapping[str, Tensor]) -> dict[str, str]:
    """The digest of each value."""
    return {path: digest(value) for path, value in values.items()}


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
