"""Inductor fails on an operator, in the rest of a function.

expect: frame("step")["status"] == "raised" and frame("step")["failed_at"]["line"] == line("fails") and \
[c["line"] for c in frame("step")["stack"][-3:]] == [line("start"), line("calls"), line("fails")]
"""

import torch
from torch._inductor.lowering import register_lowering


@register_lowering(torch.ops.aten.cumsum.default)
def cumsum(*arguments):
    raise RuntimeError("no such kernel")


def total(x):
    return x.cumsum(0).sum()  # fails


@torch.compile
def step(x):
    print("")
    return total(x * 2)  # calls


step(torch.ones(4))  # start
