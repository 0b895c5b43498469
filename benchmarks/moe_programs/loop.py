"""A model with mixture-of-experts layers, as they are mostly written: a loop over the experts with a mask for each.

python loop.py [DEVICE [LAYERS WIDTH EXPERTS CHOSEN BATCH LENGTH]]
"""

from __future__ import annotations

import sys

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class Expert(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.up = nn.Linear(width, 4 * width, bias=False)
        self.down = nn.Linear(4 * width, width, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        return self.down(F.silu(self.up(x)))


class Experts(nn.Module):
    def __init__(self, width: int, count: int, chosen: int) -> None:
        super().__init__()
        self.count = count
        self.chosen = chosen
        self.gate = nn.Linear(width, count, bias=False)
        self.experts = nn.ModuleList(Expert(width) for _ in range(count))

    def forward(self, x: Tensor) -> Tensor:
        batch, length, width = x.shape
        h = x.reshape(-1, width)
        weights, index = torch.topk(self.gate(h).softmax(dim=-1), self.chosen, dim=-1)
        out = torch.zeros_like(h)
        mask = F.one_hot(index, num_classes=self.count).permute(2, 1, 0)
        for i in range(self.count):
            k, rows = torch.where(mask[i])
            if rows.shape[0] == 0:
                continue
            out.index_add_(0, rows, self.experts[i](h[rows]) * weights[rows, k, None])
        return out.reshape(batch, length, width)


class Block(nn.Module):
    def __init__(self, width: int, count: int, chosen: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.mix = nn.Linear(width, width)
        self.experts = Experts(width, count, chosen)

    def forward(self, x: Tensor) -> Tensor:
        return x + self.experts(self.norm(x + F.gelu(self.mix(x))))


class Model(nn.Module):
    def __init__(self, layers: int, width: int, count: int, chosen: int) -> None:
        super().__init__()
        self.blocks = nn.ModuleList(Block(width, count, chosen) for _ in range(layers))

    def forward(self, x: Tensor) -> Tensor:
        for block in self.blocks:
            x = block(x)
        return x


if __name__ == "__main__":
    device, *sizes = sys.argv[1:] or ["cpu"]
    layers, width, count, chosen, batch, length = map(int, sizes or (2, 32, 4, 2, 2, 8))
    dtype = torch.float32 if device == "cpu" else torch.bfloat16
    torch.manual_seed(0)
    compiled = torch.compile(Model(layers, width, count, chosen).to(device, dtype))
    for _ in range(9):
        compiled(torch.rand(batch, length, width, device=device, dtype=dtype)).sum().backward()
