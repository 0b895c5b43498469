"""Guards with the lines that ask for them.

expect: any(g["kind"] == "TENSOR_MATCH" for c in compiles for g in c["guards"]) and any(g["site"] and g["site"]["line"] == line("here") for c in compiles for g in c["guards"])
"""

import torch

scale = 3


@torch.compile(backend="eager")
def f(x):
    return x * scale  # here


f(torch.ones(4))
