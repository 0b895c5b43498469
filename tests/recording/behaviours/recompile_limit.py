"""Torch stops compiling after eight versions.

expect: any(f["over_limit"] and f["function"] == "f" for f in frames) and len(recompiles) == 7
"""

import torch


@torch.compile(backend="eager")
def f(x, name):
    return x.sin() if name else x


for name in "abcdefghij":
    f(torch.ones(4), name)  # here
