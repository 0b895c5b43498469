"""microsoft/dion#23 (2026-01): the optimizer's update is compiled with fullgraph=True; more shapes of parameters than the limit.

Say: one function for parameters of many shapes, 9 versions: the limit with fullgraph=True is an error. Sizes of parameters are
static (force_parameter_static_shapes), so dynamic=True does not help.
Solve: recompile_limit= of at least the number of shapes, or the update on X.detach() / force_parameter_static_shapes = False.
"""

import os

import torch
from torch import nn

options = {"recompile_limit": 16} if os.environ.get("FIXED") == "1" else {}


@torch.compile(fullgraph=True, backend="aot_eager", **options)
def update(x, momentum, grad):
    momentum.mul_(0.95).add_(grad)
    x.sub_(momentum / (momentum.norm() + 1e-7), alpha=0.02)


torch.manual_seed(0)
widths = (8, 16, 24, 32, 40, 48, 56, 64, 72, 80, 88)
model = nn.Sequential(*[nn.Linear(a, b, bias=False) for a, b in zip(widths, widths[1:])])
momenta = [torch.zeros_like(p) for p in model.parameters()]
for _ in range(2):
    model(torch.randn(4, 8)).square().mean().backward()
    with torch.no_grad():
        for p, momentum in zip(model.parameters(), momenta):
            update(p, momentum, p.grad)
