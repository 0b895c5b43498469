"""nomic-ai/contrastors#83 (2025-11): a rotary cache that is made anew if it was made under inference mode.

Say: self.cos.is_inference() is what Dynamo cannot trace, by this line; all of the layer is split there.
Solve: no such test in compiled code (make the cache under inference_mode(False), or a buffer in __init__).
"""

import os

import torch
from torch import nn

FIXED = os.environ.get("FIXED") == "1"


class Rotary(nn.Module):
    def __init__(self, dim=32, length=64):
        super().__init__()
        self.dim = dim
        self.register_buffer("cos", self.table(length), persistent=False)

    def table(self, length):
        freqs = 1.0 / (10000 ** (torch.arange(0, self.dim, 2).float() / self.dim))
        return torch.outer(torch.arange(length).float(), freqs).repeat(1, 2).cos()

    def forward(self, x):
        if not FIXED and self.training and self.cos.is_inference():
            self.cos = self.table(self.cos.shape[0])
        return x * self.cos[: x.shape[1]]


torch.manual_seed(0)
model = torch.compile(nn.Sequential(nn.Linear(32, 32), Rotary(), nn.Linear(32, 32), Rotary()), backend="aot_eager")
for _ in range(4):
    model(torch.randn(2, 16, 32)).square().mean().backward()
