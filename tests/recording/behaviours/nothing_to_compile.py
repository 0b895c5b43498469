"""A compiled function without a tensor operation.

expect: frame("f")["status"] == "passed-over" and not graphs
"""

import torch


@torch.compile(backend="eager")
def f(n):  # here
    return n + 1


f(3)
