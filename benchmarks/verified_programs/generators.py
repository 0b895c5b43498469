"""Generators of torch, of Python and of NumPy that a module holds, and the global ones."""

import random

import numpy as np
import torch
from torch import nn


class Noisy(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(64, 64)
        self.python = random.Random(1)
        self.numpy = np.random.default_rng(2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = nn.functional.dropout(x, 0.1, self.training)
        y = self.linear(x) * (1 + self.python.random()) + float(self.numpy.random()) * torch.rand_like(x)
        if y.sum() > 0:
            y = y * 2
        return y + random.random()


torch.manual_seed(0)
random.seed(0)
model = torch.compile(Noisy())
for _ in range(10):
    model(torch.randn(32, 64)).sum().backward()
