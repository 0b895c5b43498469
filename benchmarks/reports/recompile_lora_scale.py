"""huggingface/peft#2416 (2025-03): adapters are swapped in a compiled model; a shortcut for scaling == 1.

Say: self.scaling differs by adapter (a float attribute, in each layer), and the branch on it; one recompile for each change.
Solve: no branch, and the scale as a tensor (a buffer that fill_ changes).
"""

import os

import torch
from torch import nn

FIXED = os.environ.get("FIXED") == "1"


class LoraLinear(nn.Module):
    def __init__(self, dim=32, rank=4):
        super().__init__()
        self.base, self.a, self.b = nn.Linear(dim, dim), nn.Linear(dim, rank), nn.Linear(rank, dim)
        self.scaling = torch.tensor(1.0) if FIXED else 1.0

    def swap(self, scaling):
        self.scaling = self.scaling.fill_(scaling) if FIXED else scaling

    def forward(self, x):
        delta = self.b(self.a(x))
        if FIXED or self.scaling != 1:
            delta = delta * self.scaling
        return self.base(x) + delta


torch.manual_seed(0)
layers = nn.Sequential(*[LoraLinear() for _ in range(3)])
model = torch.compile(layers, backend="aot_eager")
with torch.no_grad():
    for scaling in (1.0, 0.5, 1.0, 2.0, 4.0):
        for layer in layers:
            layer.swap(scaling)
        model(torch.randn(4, 32))
