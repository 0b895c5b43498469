"""Prints the CUDA devices that torch has here as JSON, in torch's order. It runs by its path, in a process of its own,
so that no other one begins CUDA.
"""

from __future__ import annotations

import json
import sys

if __name__ == "__main__":
    # Python has put the folder of this file first: its modules are none of torch's.
    del sys.path[0]
    import torch

    found = [torch.cuda.get_device_properties(number) for number in range(torch.cuda.device_count())]
    print(json.dumps([{"name": one.name, "memory_bytes": one.total_memory} for one in found]))
