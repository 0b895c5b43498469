"""The lines that take longest to trace, with what they call.

expect: [(l["site"]["line"], l["function"]) for l in compile_time["lines"][:1]] == [(line("here"), "long")] and compile_time["functions"][0]["function"] == "f" and sum(l["seconds"] for l in compile_time["lines"]) < compile_time["functions"][0]["parts"]["tracing"] * 1.1
"""

import torch


def long(x):
    for _ in range(200):
        x = torch.nn.functional.gelu(x) + 1  # here
    return x


@torch.compile(backend="eager")
def f(x):
    y = long(x.sin())
    return y.cos()


f(torch.ones(4))
