"""Measures whether an operator of torch does more work than its elements ask for."""

from __future__ import annotations

from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import FlopCounterMode

from tools.operator_calls import Call

KERNELS = (
    *("linalg", "fft", "cdist", "pdist", "trilinear", "addbmm", "cholesky", "svd"),
    *("grid_sampler", "upsample", "im2col", "col2im"),
)
"""Starts of the names of ATen's kernels that compute with whole matrices, transforms and windows.  Most products of
matrices, and convolutions, are counted by torch itself."""
NORMS = ("linalg_vector_norm", "linalg_cross")
"""Kernels that are named like these, and look at each element once."""


def is_costly(plain: list[Call], sampled: list[Call]) -> bool | None:
    """True if a call with nothing but tensors multiplies matrices, or ends at one of the kernels; for operators that
    take more, whether a quarter of torch's samples do, which are often of special cases."""
    seen = _working(plain)
    if seen:
        return any(seen)
    seen = _working(sampled)
    return 4 * sum(seen) >= len(seen) if seen else None


def _working(calls: list[Call]) -> list[bool]:
    with_elements = [call for call in calls if all(one.numel() for one in call.tensors())]
    return [found for call in with_elements if (found := _works(call)) is not None]


def _works(call: Call) -> bool | None:
    counter, names = FlopCounterMode(display=False), _Kernels()
    try:
        with counter:
            call.fresh().run()
        with names:
            call.fresh().run()
    except Exception:  # an operator may refuse tensors in a mode of dispatch
        return None
    return counter.get_total_flops() > 0 or any(
        one.lstrip("_").startswith(KERNELS) and one not in NORMS for one in names.found
    )


class _Kernels(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Gathers the names of the operators of ATen that run."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.found: set[str] = set()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.found.add(func.overloadpacket.__name__)
        with torch.no_grad():
            return func(*args, **(kwargs or {}))
