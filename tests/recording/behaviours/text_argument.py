"""Another text argument.

expect: recompile("mode")["old"] == "'a'" and recompile("mode")["new"] == "'b'"
"""

import torch


@torch.compile(backend="eager")
def f(x, mode):
    return x + 1 if mode == "a" else x - 1


f(torch.ones(4), "a")
f(torch.ones(4), "b")  # here
