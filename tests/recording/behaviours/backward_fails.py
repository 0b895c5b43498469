"""A backend fails on the backward of a line: that line is named, not the end of the graph.

expect: [b["site"]["line"] for b in breaks if b["gb_id"] == "GB0219"] == [line("here")] and any(p["site"]["line"] == line("modified") for p in problems if p["kind"] == "failure" and "TORCH_COMPILE_DISABLE" in p["consequences"][0])
"""

import torch


@torch.compile(backend="aot_eager")
def f(x, mask):
    y = torch.zeros_like(x)
    v = x[mask] * 2
    y[mask] = v  # here
    z = y + 1
    return z.sum()


mask = torch.tensor([True, False])
f(torch.ones(2, requires_grad=True), mask)
f(torch.ones(2, requires_grad=True), ~mask | mask)


@torch.compile(backend="aot_eager")
def g(x):
    y = x.exp()  # modified
    y.add_(1)
    return y.sum()


try:
    g(torch.ones(2, requires_grad=True)).backward()
except Exception as error:
    print(type(error))
