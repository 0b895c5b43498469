"""Inductor negates uint8 as int where abs() promotes it (pytorch#187018)."""

import torch


@torch.compile
def total(x):
    y = -x.abs()
    return torch.cat([y, y]).sum()


for _ in range(3):
    total(torch.tensor([200, 200], dtype=torch.uint8))
