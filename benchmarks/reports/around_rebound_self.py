"""google-research/timesfm#457 (2026-06): load_checkpoint ends in `self = torch.compile(self)`, which compiles nothing.

Say: torch.compile was called at this line, and what it returned was never called: the model ran eager throughout.
Solve: self.compile(), or self.forward = torch.compile(self.forward).
"""

import os

import torch
from torch import nn

FIXED = os.environ.get("FIXED") == "1"


class Forecaster(nn.Module):
    def __init__(self, dim=32):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(dim, 64), nn.SiLU(), nn.Linear(64, dim))

    def load(self, compile=True):
        if compile and FIXED:
            self.compile()
        elif compile:
            self = torch.compile(self)

    def forward(self, x):
        return x + self.net(x)


torch.manual_seed(0)
model = Forecaster()
model.load()
with torch.no_grad():
    for _ in range(50):
        out = model(torch.randn(4, 32))
print(out.shape)
