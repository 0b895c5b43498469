"""What a forward keeps for its backward.

expect: {"forward", "backward"} <= {m["phase"] for g in graphs for m in g["generated"]} and any(m["saved"] for g in graphs for m in g["generated"])
"""

import torch


@torch.compile(backend="aot_eager")
def f(x, w):
    return (x @ w).relu().sum()  # here


f(torch.ones(4, 4), torch.ones(4, 4, requires_grad=True)).backward()
