"""A training step: forward and loss are compiled, and gone back through.

training_step.py MODE DEVICE BATCH WIDTH DEPTH
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
        return x + y


class Model(nn.Module):
    def __init__(self, width: int, depth: int) -> None:
        super().__init__()
        self.blocks = nn.Sequential(*(Block(width) for _ in range(depth)))
        self.head = nn.Linear(width, 1)

    def forward(self, x: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        loss = F.mse_loss(self.head(self.blocks(x)), target)
        print("loss", loss.item())
        return loss


torch.manual_seed(0)
model = Model(width, depth).to(device)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
compiled = torch.compile(model, mode=mode)
for _ in range(5):
    optimizer.zero_grad()
    compiled(torch.randn(batch, width, device=device), torch.randn(batch, 1, device=device)).backward()
    optimizer.step()
