"""A neural ODE over a batch of states, solved with fixed steps, trained (torchdiffeq)."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from torchdiffeq import odeint


class Field(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.net = nn.Sequential(nn.Linear(width, 4 * width), nn.Tanh(), nn.Linear(4 * width, width))

    def forward(self, t: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return self.net(y)


class Ode(nn.Module):
    def __init__(self, width: int, steps: int, method: str) -> None:
        super().__init__()
        self.field, self.method = Field(width), method
        self.register_buffer("times", torch.linspace(0, 1, steps))

    def forward(self, y: torch.Tensor) -> torch.Tensor:
        return odeint(self.field, y, self.times, method=self.method)[-1].square().mean()


def build(device: str, tiny: bool) -> tuple[Any, tuple[Any, ...], bool]:
    """The model, its inputs, and whether the backward pass is run."""
    width, batch, steps = (8, 4, 4) if tiny else (256, 2048, 16)
    return Ode(width, steps, "euler").to(device), (torch.randn(batch, width, device=device),), True
