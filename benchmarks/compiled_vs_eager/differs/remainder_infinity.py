"""Inductor computes 5 % inf as nan."""

import torch


@torch.compile
def wrapped(angle, period):
    return torch.remainder(angle, period)


for _ in range(3):
    wrapped(torch.tensor([5.0, 1.0, -2.0, 7.0] * 4), torch.tensor([float("inf"), 2.0, 3.0, 4.0] * 4))
