"""The test writes to its argument, and a side that is taken late reads it: `where` must not move the side before it."""

import torch

torch.manual_seed(0)


@torch.compile
def step(x: torch.Tensor) -> torch.Tensor:
    if x.add_(1).sum() > 0:
        return x * 2
    y = x * 3
    return y


for number in range(12):
    step(torch.randn(32, 64) - (10.0 if number >= 8 else -10.0))
