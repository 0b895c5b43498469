"""A ConvNeXt: four stages of blocks, each with its own width.

python convolutions.py [DEVICE] [LAYERS] [WIDTH] [BATCH] [train]
"""

from __future__ import annotations

import sys

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class Block(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.depthwise = nn.Conv2d(width, width, 7, padding=3, groups=width)
        self.norm = nn.LayerNorm(width)
        self.up = nn.Linear(width, 4 * width)
        self.down = nn.Linear(4 * width, width)
        self.scale = nn.Parameter(torch.full((width,), 0.1))

    def forward(self, x: Tensor) -> Tensor:
        y = self.norm(self.depthwise(x).permute(0, 2, 3, 1))
        y = self.scale * self.down(F.gelu(self.up(y)))
        return x + y.permute(0, 3, 1, 2)


class ConvNet(nn.Module):
    def __init__(self, layers: int, width: int) -> None:
        super().__init__()
        widths = [width, 2 * width, 4 * width, 8 * width]
        self.stem = nn.Conv2d(3, width, 4, 4)
        self.stages = nn.ModuleList()
        for before, now, depth in zip([width, *widths], widths, (3, 3, layers, 3), strict=False):
            self.stages.append(nn.Identity() if before == now else nn.Conv2d(before, now, 2, 2))
            self.stages.append(nn.Sequential(*(Block(now) for _ in range(depth))))
        self.head = nn.Linear(8 * width, 1000)

    def forward(self, images: Tensor) -> Tensor:
        x = self.stem(images)
        for stage in self.stages:
            x = stage(x)
        return self.head(x.mean(dim=(2, 3)))


def build(device: str, layers: int = 27, width: int = 128, batch: int = 32) -> tuple[nn.Module, Tensor]:
    torch.manual_seed(0)
    dtype = torch.bfloat16 if device == "cuda" else torch.float32
    return ConvNet(layers, width).to(device, dtype), torch.rand(batch, 3, 224, 224, device=device, dtype=dtype)


if __name__ == "__main__":
    device = sys.argv[1] if len(sys.argv) > 1 else "cuda"
    model, inputs = build(device, *map(int, sys.argv[2:5]))
    trains = "train" in sys.argv
    compiled = torch.compile(model)
    with torch.set_grad_enabled(trains):
        for _ in range(50):
            result = compiled(inputs)
            if trains:
                result.sum().backward()
