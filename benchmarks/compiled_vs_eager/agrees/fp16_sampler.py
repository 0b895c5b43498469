"""A sampler in float16 without gradients, which writes into a cache."""

import torch
from torch import nn

torch.manual_seed(0)
norm, out = nn.LayerNorm(64).half(), nn.Linear(64, 64).half()
cache = torch.zeros(4, 16, 64, dtype=torch.float16)


@torch.compile
def step(x, position):
    cache.index_copy_(1, position, x)
    weights = torch.softmax((cache * x).sum(-1) / 8, dim=-1)
    x = x + out(norm((weights[..., None] * cache).sum(1, keepdim=True)))
    return x, x.softmax(-1).argmax(-1)


with torch.no_grad():
    token = torch.randn(4, 1, 64, dtype=torch.float16)
    for number in range(5):
        token, chosen = step(token, torch.tensor([number]))
