"""Blocks that return early where there is little to add, and clip what is large.

norm_branch.py MODE DEVICE BATCH WIDTH DEPTH
"""

import sys

import torch
from torch import nn

mode, device, batch, width, depth = sys.argv[1], sys.argv[2], *map(int, sys.argv[3:])


class Block(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.inner = nn.Linear(width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = torch.tanh(self.inner(x))
        norm = y.norm()
        if norm > 10.0:
            y = y * (10.0 / norm)
        if y.abs().max() < 1e-6:
            return x
        return x + y


torch.manual_seed(0)
model = nn.Sequential(*(Block(width) for _ in range(depth))).to(device).eval()
compiled = torch.compile(model, mode=mode)
with torch.no_grad():
    for _ in range(5):
        compiled(torch.randn(batch, width, device=device))
