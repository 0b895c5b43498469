"""A number that is read from a tensor.

expect: site("here")["rule"] == "BRK201" and site("here")["verdict"] == "splits"
"""

import torch


@torch.compile(backend="eager")
def f(x):
    y = x.sin()
    return y * y.sum().item()  # here


f(torch.ones(4))
