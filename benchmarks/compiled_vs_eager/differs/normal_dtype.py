"""A sample of Normal has another dtype (pytorch#194547)."""

import torch


@torch.compile
def sample(loc, scale):
    return torch.distributions.Normal(loc, scale, validate_args=False).sample()


for _ in range(3):
    sample(torch.zeros(8, dtype=torch.float16), torch.ones(8))
