"""pytorch/pytorch#101154 (2023-05): Reformer draws a seed in forward, so that dropout is the same when it is computed again.

Say: torch.seed() and torch.manual_seed() set the generator, which Dynamo does not trace; each block breaks there.
Solve: set the seed outside of compiled code, or checkpoint (which keeps random numbers by itself) in place of seeds.
"""

import os

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

FIXED = os.environ.get("FIXED") == "1"


class Attention(nn.Module):
    def __init__(self, dim=32):
        super().__init__()
        self.qkv, self.dropout = nn.Linear(dim, 3 * dim), nn.Dropout(0.1)

    def attend(self, x):
        q, k, v = self.qkv(x).chunk(3, -1)
        return self.dropout((q @ k.transpose(-1, -2)).softmax(-1)) @ v

    def forward(self, x):
        if FIXED:
            return x + checkpoint(self.attend, x, use_reentrant=False)
        self.seed = torch.seed() % 2**31
        torch.manual_seed(self.seed)
        return x + self.attend(x)


torch.manual_seed(0)
model = torch.compile(nn.Sequential(Attention(), Attention()), backend="aot_eager")
for _ in range(4):
    model(torch.randn(2, 16, 32)).square().mean().backward()
