"""A break in a loop makes the whole function run eager.

expect: site("here")["verdict"] == "eager" and site("here")["place"] == "loop" and eager("f") and not graphs
"""

import torch


@torch.compile(backend="eager")
def f(x):
    for _ in range(2):
        x = x.sin()
        print("", end="")  # here
        x = x.cos()
    return x


f(torch.ones(4))
