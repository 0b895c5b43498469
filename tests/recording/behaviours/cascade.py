"""One changed size recompiles a function, its callee and its rest: one cause.

expect: len(recompiles) >= 3 and len({r["cause"] for r in recompiles}) == 1
"""

import torch


@torch.compiler.disable(recursive=False)
def between(x):
    return inner(x)


def inner(x):
    return x.cos()


@torch.compile(backend="eager")
def f(x):
    y = between(x.sin())
    return y + x


f(torch.ones(4))
f(torch.ones(5))  # here
