"""Another dtype.

expect: recompile("x.dtype")["rule"] == "BRK716"
"""

import torch


@torch.compile(backend="eager")
def f(x):
    return x.sin()


f(torch.ones(4))
f(torch.ones(4, dtype=torch.float64))  # here
