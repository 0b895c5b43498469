"""A changed batch size.

expect: recompile("x.shape[0]")["old"] == "4" and recompile("x.shape[0]")["new"] == "5" and recompile("x.shape[0]")["trigger"]["line"] == line("here")
"""

import torch


@torch.compile(backend="eager")
def f(x):
    return x.sin()


f(torch.ones(4))
f(torch.ones(5))  # here
