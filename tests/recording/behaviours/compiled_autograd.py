"""A backward pass that compiled autograd captured.

expect: any(c["function"] == "f (backward)" for c in compiles)
"""

import torch

torch._dynamo.config.compiled_autograd = True


@torch.compile(backend="eager")
def f(x):
    x.sin().sum().backward()  # here


for _ in range(2):
    f(torch.ones(4, requires_grad=True))
