"""A break that makes a function run eager hides the breaks after it.

expect: eager("f") and all(b["site"]["line"] != line("hidden") for b in breaks)
"""

import torch


@torch.compile(backend="eager")
def f(x):
    for _ in range(2):
        print("", end="")  # here
        x = x.sin()
    if x.sum() > 0:  # hidden
        x = x + 1
    return x


f(torch.ones(4))
