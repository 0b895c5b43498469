"""A size that is marked as dynamic must equal a constant: only compiled code raises that, at the line that needs it.

expect: [(p["kind"], p["site"]["line"], p["consequences"]) for p in problems] == [("failure", line("here"), ["Only compiled code raises this: the plain program goes on here."])]
"""

import torch

scale = torch.ones(8)


@torch.compile(backend="eager")
def f(x):
    y = x.sin()
    return y * scale  # here


x = torch.ones(8)
torch._dynamo.mark_dynamic(x, 0)
f(x)
