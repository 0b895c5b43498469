"""Inductor multiplies an int64 arange in 32 bits (pytorch#175966)."""

import torch


@torch.compile
def offsets(x):
    return torch.arange(0, 9, dtype=torch.int64) * torch.tensor([1_500_000_000]) + x


for _ in range(3):
    offsets(torch.zeros(9, dtype=torch.int64))
