"""A shape that depends on values.

expect: site("here")["rule"] == "BRK301"
"""

import torch


@torch.compile(backend="eager")
def f(x):
    return torch.nonzero(x.sin()).sum()  # here


f(torch.ones(4))
