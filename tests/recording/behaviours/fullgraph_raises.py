"""Fullgraph=True raises at the first break.

expect: site("here")["verdict"] == "raises" and script["exit_status"] == 1
"""

import torch


@torch.compile(backend="eager", fullgraph=True)
def f(x):
    y = x.sin()
    print("")  # here
    return y


f(torch.ones(4))
