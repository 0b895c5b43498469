"""The code after a break runs eager.

expect: any(fr["rest_only"] and fr["status"] == "eager" for fr in frames)
"""

import torch


@torch.compile(backend="eager")
def f(x):
    y = x.sin()
    print("", end="")  # here
    try:
        y = y.cos()
        print("", end="")  # second
    finally:
        y = y + 1
    return y


f(torch.ones(4))
