"""The index of a NaN in max_pool2d is another one."""

import torch
import torch.nn.functional as F


@torch.compile
def pooled(x):
    return F.max_pool2d(x, 2, return_indices=True)


for _ in range(3):
    pooled(torch.tensor([float("nan"), 1.0, 2.0, float("-inf")] * 16).reshape(1, 1, 8, 8))
