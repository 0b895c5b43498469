"""A vision transformer, trained.

python vision_transformer.py [DEVICE] [LAYERS] [WIDTH] [BATCH] [train]
"""

from __future__ import annotations

import sys

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class Block(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.attention_norm = nn.LayerNorm(width)
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)
        self.scale = nn.Parameter(torch.full((width,), 0.1))
        self.norm = nn.LayerNorm(width)
        self.up = nn.Linear(width, 4 * width)
        self.down = nn.Linear(4 * width, width)

    def forward(self, x: Tensor) -> Tensor:
        qkv = self.qkv(self.attention_norm(x)).unflatten(-1, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(qkv[0], qkv[1], qkv[2])
        x = x + self.scale * self.out(y.transpose(1, 2).flatten(2))
        return x + self.scale * self.down(F.gelu(self.up(self.norm(x))))


class VisionTransformer(nn.Module):
    def __init__(self, layers: int, width: int) -> None:
        super().__init__()
        self.patches = nn.Conv2d(3, width, 16, 16)
        self.positions = nn.Parameter(torch.zeros(196, width))
        self.blocks = nn.Sequential(*(Block(width, width // 16 if width < 64 else width // 64) for _ in range(layers)))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, 1000)

    def forward(self, images: Tensor) -> Tensor:
        x = self.patches(images).flatten(2).transpose(1, 2) + self.positions
        return self.head(self.norm(self.blocks(x)).mean(dim=1))


def build(device: str, layers: int = 24, width: int = 1024, batch: int = 16) -> tuple[nn.Module, Tensor]:
    torch.manual_seed(0)
    dtype = torch.bfloat16 if device == "cuda" else torch.float32
    return VisionTransformer(layers, width).to(device, dtype), torch.rand(
        batch, 3, 224, 224, device=device, dtype=dtype
    )


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
