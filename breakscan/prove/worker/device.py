"""The CUDA device: whether it is used, when its work is done, and where a step begins."""

from __future__ import annotations

from typing import Any

ALLOCATIONS = "allocation.all.allocated"
"""What torch's allocator has handed out on a device since it began."""


def cuda_in_use() -> bool:
    """Whether the program has used CUDA, which is whether it has had a tensor there.

    Where there is a GPU, the compiler initializes CUDA for any program, to keep the states of its generators.
    """
    return bool(devices_in_use())


def devices_in_use() -> list[int]:
    """The numbers of the CUDA devices on which the program has had a tensor."""
    import torch

    cuda: Any = torch.cuda
    if not cuda.is_initialized():
        return []
    every = range(cuda.device_count())
    try:
        return [number for number in every if cuda.memory_stats(number).get(ALLOCATIONS, 0)]
    except RuntimeError:
        # An allocator of the program's own does not count.
        return list(every)


def wait_for_device() -> None:
    """Waits until all work of CUDA devices is done."""
    import torch

    cuda: Any = torch.cuda
    # To wait for a device without work costs less than to ask whether it is in use.
    if cuda.is_initialized():
        cuda.synchronize()


def free_memory() -> int | None:
    """Returns the bytes that are free on the current CUDA device, None if none is used."""
    import torch

    return int(torch.cuda.mem_get_info()[0]) if cuda_in_use() else None


def mark_step() -> None:
    """A new step begins: CUDA graphs may reuse the memory of the outputs of the one before."""
    import torch

    compiler: Any = torch.compiler
    compiler.cudagraph_mark_step_begin()
