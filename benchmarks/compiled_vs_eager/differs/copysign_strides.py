"""The layout of copysign's result is another one than eager's (pytorch#198364)."""

import torch


@torch.compile
def signed(a, b):
    return torch.copysign(a, b)


torch.manual_seed(0)
for _ in range(3):
    signed(torch.rand(6, 5).mT, torch.randn(5, 6))
