"""The modes of torch that decide how a call runs: read at one call, and set for another."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from breakscan.prove.worker.protocol import Autocast, CallModes

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True, slots=True)
class Modes:
    """``autocast`` holds whether it is on and its dtype, by device type."""

    grad: bool
    inference: bool
    autocast: dict[str, tuple[bool, torch.dtype]]
    autocast_cache: bool
    default_dtype: torch.dtype

    @staticmethod
    def now() -> Modes:
        """Returns the modes of the calling thread."""
        import torch

        types = ("cpu", "cuda") if torch.cuda.is_available() else ("cpu",)
        return Modes(
            grad=torch.is_grad_enabled(),
            inference=torch.is_inference_mode_enabled(),
            autocast={one: (torch.is_autocast_enabled(one), torch.get_autocast_dtype(one)) for one in types},
            autocast_cache=torch.is_autocast_cache_enabled(),
            default_dtype=torch.get_default_dtype(),
        )

    @contextlib.contextmanager
    def set(self) -> Iterator[None]:
        """Sets them while the block runs, and restores the former modes after it."""
        import torch

        with default_dtype(self.default_dtype), contextlib.ExitStack() as stack:
            if torch.is_inference_mode_enabled() != self.inference:
                stack.enter_context(torch.inference_mode(self.inference))
            stack.enter_context(torch.set_grad_enabled(self.grad))
            for one, (enabled, dtype) in self.autocast.items():
                if (torch.is_autocast_enabled(one), torch.get_autocast_dtype(one)) != (enabled, dtype):
                    stack.enter_context(torch.autocast(one, dtype, enabled, self.autocast_cache))
            yield

    def described(self) -> CallModes:
        """Returns the modes as plain values, which can be compared with those of another process."""
        autocast = {one: Autocast(enabled, str(dtype)) for one, (enabled, dtype) in self.autocast.items()}
        return CallModes(self.grad, self.inference, autocast, str(self.default_dtype))


@contextlib.contextmanager
def default_dtype(dtype: torch.dtype) -> Iterator[None]:
    """Sets torch's default dtype while the block runs."""
    import torch

    before = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    try:
        yield
    finally:
        torch.set_default_dtype(before)


@contextlib.contextmanager
def without_autocast() -> Iterator[None]:
    """Turns autocast off while the block runs."""
    import torch

    with torch.autocast("cpu", enabled=False), contextlib.ExitStack() as stack:
        if torch.cuda.is_available():
            stack.enter_context(torch.autocast("cuda", enabled=False))
        yield


@contextlib.contextmanager
def eager_stance() -> Iterator[None]:
    """Makes compiled callables run eager while the block runs."""
    import torch

    with torch.compiler.set_stance("force_eager"):
        yield


@contextlib.contextmanager
def double_precision(tensors: list[torch.Tensor]) -> Iterator[None]:
    """Makes these tensors double, and double the default dtype, while the block runs."""
    import torch

    held = [(tensor, tensor.data) for tensor in tensors if tensor.dtype.is_floating_point]
    with default_dtype(torch.float64):
        try:
            for tensor, data in held:
                tensor.grad = None
                tensor.data = data.double()
            yield
        finally:
            for tensor, data in held:
                tensor.grad = None
                tensor.data = data
