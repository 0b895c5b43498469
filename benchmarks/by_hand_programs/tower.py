"""Inference: a tower of gated residual blocks, as recommenders have them."""

import torch
from torch import nn


class Block(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.gate = nn.Linear(width, width)
        self.value = nn.Linear(width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.norm(x)
        return x + torch.sigmoid(self.gate(y)) * torch.tanh(self.value(y)).clamp(-0.9, 0.9)


torch.manual_seed(0)
model = nn.Sequential(*(Block(64) for _ in range(6))).eval()
x = torch.randn(64, 64)


def step(call):
    with torch.no_grad():
        return call(x)


if __name__ == "__main__":
    compiled = torch.compile(model)
    for _ in range(5):
        step(compiled)
