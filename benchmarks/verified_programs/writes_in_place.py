"""A call that changes its argument, a buffer and a parameter in place."""

import torch
from torch import nn


class Memory(nn.Module):
    bank: torch.Tensor

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(64, 64) / 8)
        self.register_buffer("bank", torch.zeros(64))
        self.scale = 1

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x.mul_(0.5)
        self.bank.lerp_(x.mean(0), 0.1)
        with torch.no_grad():
            self.weight.clamp_(-1, 1)
        y = x @ self.weight + self.bank
        if y.isnan().any():
            raise FloatingPointError("NaN in the memory")
        if y.abs().mean() > 0.5:
            y = y / y.abs().mean()
        return y


torch.manual_seed(0)
memory = Memory()
compiled = torch.compile(memory)
for _ in range(10):
    compiled(torch.randn(32, 64))
