"""A backend that fails.

expect: frame("f")["status"] == "raised" and script["exit_status"] == 1
"""

import torch


def backend(module, inputs):
    raise RuntimeError("no such kernel")


@torch.compile(backend=backend)
def f(x):  # here
    return x.sin()


f(torch.ones(4))
