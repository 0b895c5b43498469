"""A function that is kept out of the graph on purpose.

expect: site("here") and site("here")["gb_id"]
"""

import torch


@torch.compiler.disable
def helper(x):
    return x + 1


@torch.compile(backend="eager")
def f(x):
    return helper(x.sin()).cos()  # here


f(torch.ones(4))
