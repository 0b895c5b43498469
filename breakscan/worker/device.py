"""The CUDA device: whether it is used, when its work is done, and where a step begins."""

from __future__ import annotations

from typing import Any


def cuda_in_use() -> bool:
    """Whether the program has used CUDA."""
    import torch

    cuda: Any = torch.cuda
    return bool(cuda.is_initialized())


def wait_for_device() -> None:
    """Waits until all work of CUDA devices is done."""
    import torch

    if cuda_in_use():
        torch.cuda.synchronize()


def mark_step() -> None:
    """A new step begins: CUDA graphs may reuse the memory of the outputs of the one before."""
    import torch

    compiler: Any = torch.compiler
    compiler.cudagraph_mark_step_begin()
