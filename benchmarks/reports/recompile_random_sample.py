"""pytorch/pytorch#197085 (2026-09): random.sample in a compiled step (the report: one choice for ever; on 2.13 it breaks).

Say: random.sample is not traced; its result is a list of Python numbers, each of which is guarded, so the rest is compiled for
each draw until the limit.
Solve: draw outside of compiled code and pass a tensor, or torch.randperm, which compiles.
"""

import os
import random

import torch
from torch import nn

FIXED = os.environ.get("FIXED") == "1"


class Masked(nn.Module):
    def __init__(self, patches=16, dim=32):
        super().__init__()
        self.patches, self.lin = patches, nn.Linear(dim, dim)

    def forward(self, x):
        if FIXED:
            keep = torch.randperm(self.patches)[:4]
        else:
            keep = random.sample(range(self.patches), 4)
        return self.lin(x[:, keep])


torch.manual_seed(0)
random.seed(0)
model = torch.compile(Masked(), backend="aot_eager")
for _ in range(12):
    model(torch.randn(2, 16, 32)).sum().backward()
