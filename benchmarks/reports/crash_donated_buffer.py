"""locuslab/torchdeq#11 (2025-11): backward twice through a compiled layer (retain_graph=True) raises, in eager it does not.

Say: only compiled code raises: Inductor's backward gives its saved tensors away (donated buffers); this line asks to keep them.
Solve: torch._functorch.config.donated_buffer = False (or one backward).
"""

import os

import torch
from torch import nn

if os.environ.get("FIXED") == "1":
    import torch._functorch.config

    torch._functorch.config.donated_buffer = False


class Cell(nn.Module):
    def __init__(self, dim=32):
        super().__init__()
        self.norm, self.lin = nn.LayerNorm(dim), nn.Linear(dim, dim)

    def forward(self, z, x):
        return self.norm(torch.tanh(self.lin(z) + x))


torch.manual_seed(0)
cell = torch.compile(Cell())
x, z = torch.randn(8, 32), torch.randn(8, 32, requires_grad=True)
cell(z, x).square().mean().backward()
out = cell(z, x)
v = torch.randn_like(z)
for _ in range(4):
    v = torch.autograd.grad(out, z, v, retain_graph=True)[0]
    v = v / v.norm()
print("largest singular value near", v.norm().item())
