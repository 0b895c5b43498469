"""AOTAutograd's cache stores nothing that calls a torch.autograd.Function.

env: TORCHINDUCTOR_CACHE_DIR=.
expect: [(p["kind"], p["site"]["line"], [r["kind"] for r in p["remedies"]], "Double" in p["why"]) for p in problems] == [("cache-bypass", line("here"), ["setting"], True)]
"""

import torch


class Double(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, gradient):
        return gradient * 2


@torch.compile
def f(x):
    y = x.sin()
    return Double.apply(y)  # here


f(torch.ones(3, requires_grad=True))
