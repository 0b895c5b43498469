"""A generator function is not compiled, and no log says so.

expect: eager("f") and frame("f")["rule"] == "BRK506"
"""

import torch


@torch.compile(backend="eager")
def f(x):  # here
    yield x.sin()


list(f(torch.ones(4)))
