"""Blocks that print and log what they see.

logging_blocks.py MODE DEVICE BATCH WIDTH DEPTH
"""

import logging
import sys

import torch
from torch import nn
from torch.nn import functional as F

mode, device, batch, width, depth = sys.argv[1], sys.argv[2], *map(int, sys.argv[3:])
logger = logging.getLogger(__name__)


class Block(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.inner = nn.Linear(width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = F.silu(self.inner(self.norm(x)))
        print("block", tuple(y.shape))
        y = F.softmax(y, dim=-1) * y
        logger.info("weighted %s", y.shape)
        return x + y


torch.manual_seed(0)
model = nn.Sequential(*(Block(width) for _ in range(depth))).to(device).eval()
compiled = torch.compile(model, mode=mode)
with torch.no_grad():
    for _ in range(5):
        compiled(torch.randn(batch, width, device=device))
