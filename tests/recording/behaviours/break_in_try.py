"""A break in a try makes the function run eager.

expect: site("here")["verdict"] == "eager" and site("here")["place"] == "try"
"""

import torch


@torch.compile(backend="eager")
def f(x):
    y = x.sin()
    try:
        print("", end="")  # here
    finally:
        y = y + 1
    return y


f(torch.ones(4))
