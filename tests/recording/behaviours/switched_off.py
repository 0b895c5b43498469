"""TORCH_COMPILE_DISABLE is set.

env: TORCH_COMPILE_DISABLE=1
expect: environment["disabled_by"] == "TORCH_COMPILE_DISABLE" and not graphs
"""

import torch


@torch.compile(backend="eager")
def f(x):  # here
    return x.sin()


f(torch.ones(4))
