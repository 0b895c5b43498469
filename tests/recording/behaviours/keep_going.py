"""--keep-going shows the breaks after the first one.

options: --keep-going
expect: site("here") and site("second")
"""

import torch


@torch.compile(backend="eager", fullgraph=True)
def f(x):
    y = x.sin()
    print("", end="")  # here
    y = y.cos()
    print("", end="")  # second
    return y + 1


f(torch.ones(4))
