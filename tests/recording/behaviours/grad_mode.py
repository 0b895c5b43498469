"""The same call with and without gradients.

expect: recompiles[0]["rule"] == "BRK714"
"""

import torch


@torch.compile(backend="eager")
def f(x):
    return x.sin()


f(torch.ones(4))
with torch.no_grad():
    f(torch.ones(4))  # here
