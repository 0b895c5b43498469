"""How much memory of devices the program has used."""

from __future__ import annotations

import sys
from collections.abc import Iterator

from breakscan.record.records import DeviceMemory


def device_memory() -> Iterator[DeviceMemory]:
    """Of each CUDA device that this process uses.  Nothing is started over: that is the program's."""
    torch = sys.modules.get("torch")
    if torch is None or not torch.cuda.is_initialized():
        return
    for device in range(torch.cuda.device_count()):
        allocated = torch.cuda.max_memory_allocated(device)
        if allocated:
            yield DeviceMemory(f"cuda:{device}", allocated, torch.cuda.max_memory_reserved(device))
