"""What torch.compile returned is never called.

expect: targets[0]["attempted"] is False and not graphs
"""

import torch


def f(x):
    return x.sin()


fast = torch.compile(f, backend="eager")  # here
f(torch.ones(4))
