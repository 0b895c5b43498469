"""Two results share memory in eager code alone."""

import torch


@torch.compile
def same_twice(x):
    y = x.to(torch.float64)
    return y, y.contiguous()


for _ in range(3):
    same_twice(torch.ones(4))
