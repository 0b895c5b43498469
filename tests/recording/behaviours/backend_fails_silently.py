"""A backend that fails where errors are suppressed.

expect: eager("f") and "no such kernel" in frame("f")["reason"]
"""

import torch

torch._dynamo.config.suppress_errors = True


def backend(module, inputs):
    raise RuntimeError("no such kernel")


@torch.compile(backend=backend)
def f(x):  # here
    return x.sin()


f(torch.ones(4))
