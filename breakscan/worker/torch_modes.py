"""The switches of torch that decide how a call runs: taken at one call, and set for another."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Modes:
    """``autocast`` holds whether it is on and its dtype, by device type."""

    grad: bool
    inference: bool
    autocast: dict[str, tuple[bool, Any]]
    autocast_cache: bool
    default_dtype: Any

    @staticmethod
    def now() -> Modes:
        """Those of the calling thread."""
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
        """While the block runs, they are as they were when these were taken."""
        import torch

        before = torch.get_default_dtype()
        torch.set_default_dtype(self.default_dtype)
        try:
            with contextlib.ExitStack() as stack:
                if torch.is_inference_mode_enabled() != self.inference:
                    stack.enter_context(torch.inference_mode(self.inference))
                stack.enter_context(torch.set_grad_enabled(self.grad))
                for one, (enabled, dtype) in self.autocast.items():
                    if (torch.is_autocast_enabled(one), torch.get_autocast_dtype(one)) != (enabled, dtype):
                        stack.enter_context(torch.autocast(one, dtype, enabled, self.autocast_cache))
                yield
        finally:
            torch.set_default_dtype(before)

    def told(self) -> dict[str, Any]:
        """In plain words, to be compared with those of another process."""
        return {
            "grad mode": self.grad,
            "inference mode": self.inference,
            "autocast": {one: [enabled, str(dtype)] for one, (enabled, dtype) in self.autocast.items()},
            "default dtype": str(self.default_dtype),
        }
