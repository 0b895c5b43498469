"""A function that is compiled again after each reset.

expect: [(p["kind"], p["functions"], p["count"]) for p in problems] == [("compiled-anew", ["f"], 3)]
"""

import torch


@torch.compile(backend="eager")
def f(x):
    return x.sin()


for _ in range(3):
    torch._dynamo.reset()
    f(torch.ones(3))
