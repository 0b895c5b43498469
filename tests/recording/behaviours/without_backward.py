"""The backward of compiled code raises where a plain one does not, and where both do.

expect: [(p["site"]["line"], p["functions"], [r["name"] for r in p["remedies"]], "Only" in p["consequences"][0]) for p in problems] == [(line("kept"), ["f"], ["donated_buffer"], True), (line("again"), ["f"], ["one-backward"], True), (line("freed"), ["f"], [], False)]
"""

import contextlib

import torch


@torch.compile(backend="aot_eager")
def f(x):
    return torch.nn.functional.layer_norm(torch.tanh(x), (4,))


class Plain(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, grad):
        raise ValueError


x = torch.rand(2, 4, requires_grad=True)
f(x).sum().backward()
with contextlib.suppress(RuntimeError):
    torch.autograd.grad(f(x).sum(), x, retain_graph=True)  # kept
with torch._functorch.config.patch(donated_buffer=False), contextlib.suppress(RuntimeError):
    (gradient,) = torch.autograd.grad(f(x).square().sum(), x, create_graph=True)
    gradient.sum().backward()  # again
y = f(x).sum()
y.backward()
with contextlib.suppress(RuntimeError):
    y.backward()  # freed
with contextlib.suppress(ValueError):
    Plain.apply(x).sum().backward()
