"""Residual blocks that guard against overflow and scale by a number of the model's state.

residual_blocks.py MODE DEVICE BATCH WIDTH DEPTH
"""

import sys

import torch
from torch import nn
from torch.nn import functional as F

mode, device, batch, width, depth = sys.argv[1], sys.argv[2], *map(int, sys.argv[3:])


class Block(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.up = nn.Linear(width, 2 * width)
        self.down = nn.Linear(2 * width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.down(F.gelu(self.up(self.norm(x))))
        if torch.isinf(y).any():
            y = torch.clamp(y, min=-1e4, max=1e4)
        scale = y.abs().mean().item()
        return x + y / (1.0 + scale)


torch.manual_seed(0)
model = nn.Sequential(*(Block(width) for _ in range(depth))).to(device).eval()
compiled = torch.compile(model, mode=mode)
with torch.no_grad():
    for _ in range(5):
        compiled(torch.randn(batch, width, device=device))
