"""pytorch/pytorch#185886 (2026-06; #191753): entering the compiled model costs more with each layer (guards), on 2.12 and later.

Say: the time of a call is guards, not kernels: how many microseconds, that they grow with the layers (a float attribute in each).
Solve: torch._dynamo.config.use_recursive_dict_tags_for_guards and specialize_float, guard_filter_fn that skips modules, or
torch.compiler.set_stance(skip_guard_eval_unsafe=True) once it is warm.
"""

import contextlib
import os

import torch
from torch import nn

FIXED = os.environ.get("FIXED") == "1"


class Layer(nn.Module):
    def __init__(self, index, dim=16):
        super().__init__()
        self.weight, self.eps, self.scale = nn.Parameter(torch.ones(dim)), 1e-5 + index * 1e-7, 1.0 + index / 100

    def forward(self, x):
        return x + self.scale * self.weight * x * (x.square().mean(-1, keepdim=True) + self.eps).rsqrt()


torch.manual_seed(0)
model = torch.compile(nn.Sequential(*[Layer(i) for i in range(40)]), backend="aot_eager")
x = torch.randn(1, 16)
with torch.no_grad():
    model(x)
    skip = torch.compiler.set_stance(skip_guard_eval_unsafe=True) if FIXED else contextlib.nullcontext()
    with skip:
        for _ in range(300):
            model(x)
