"""One print three calls deep is one site.

expect: site("here")["count"] == 3 and len(breaks) == 1 and site("here")["rule"] == "BRK401"
"""

import torch


def inner(x):
    print("", end="")  # here
    return x + 1


def middle(x):
    return inner(x.sin()).cos()


@torch.compile(backend="eager")
def f(x):
    return middle(x * 2) - 1


f(torch.ones(4))
