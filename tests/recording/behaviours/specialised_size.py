"""A dynamic size that the code turns into a constant.

expect: specialisations and specialisations[0]["value"] == "6" and specialisations[0]["site"]["line"] == line("here")
"""

import torch


@torch.compile(backend="eager", dynamic=True)
def f(x):
    y = x.sin()
    if y.shape[0] == 6:  # here
        y = y + 1
    return y


f(torch.ones(6))
