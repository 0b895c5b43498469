"""Inductor drops a cast to float16 and back (pytorch#185337)."""

import torch


@torch.compile
def rounding_error(x):
    return x - x.to(torch.float16).to(torch.float32)


torch.manual_seed(0)
for _ in range(3):
    rounding_error(torch.randn(64, 64))
