"""A decoder of equal blocks: grouped-query attention with rotary positions, RMS norm, SwiGLU.

python decoder.py [DEVICE] [LAYERS] [WIDTH] [TOKENS] [train]
"""

from __future__ import annotations

import sys

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class Attention(nn.Module):
    def __init__(self, width: int, head: int) -> None:
        super().__init__()
        self.head = head
        self.q = nn.Linear(width, width, bias=False)
        self.kv = nn.Linear(width, width // 2, bias=False)
        self.out = nn.Linear(width, width, bias=False)

    def forward(self, x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        q = self.q(x).unflatten(-1, (-1, self.head)).transpose(1, 2)
        k, v = (part.unflatten(-1, (-1, self.head)).transpose(1, 2) for part in self.kv(x).chunk(2, dim=-1))
        q, k = rotated(q, cos, sin), rotated(k, cos, sin)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
        return self.out(y.transpose(1, 2).flatten(2))


def rotated(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    first, second = x.chunk(2, dim=-1)
    return x * cos + torch.cat((-second, first), dim=-1) * sin


class Block(nn.Module):
    def __init__(self, width: int, head: int) -> None:
        super().__init__()
        self.attention_norm = nn.RMSNorm(width)
        self.attention = Attention(width, head)
        self.norm = nn.RMSNorm(width)
        self.up = nn.Linear(width, 8 * width, bias=False)
        self.down = nn.Linear(4 * width, width, bias=False)

    def forward(self, x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        x = x + self.attention(self.attention_norm(x), cos, sin)
        gate, up = self.up(self.norm(x)).chunk(2, dim=-1)
        return x + self.down(F.silu(gate) * up)


class Decoder(nn.Module):
    def __init__(self, layers: int, width: int, tokens: int, head: int = 64, words: int = 32_000) -> None:
        super().__init__()
        head = min(head, width // 4)
        self.embed = nn.Embedding(words, width)
        self.layers = nn.ModuleList(Block(width, head) for _ in range(layers))
        self.norm = nn.RMSNorm(width)
        self.head = nn.Linear(width, words, bias=False)
        angles = torch.outer(torch.arange(tokens), 10_000.0 ** (-torch.arange(0, head, 2) / head)).repeat(1, 2)
        self.register_buffer("cos", angles.cos())
        self.register_buffer("sin", angles.sin())

    def forward(self, tokens: Tensor) -> Tensor:
        x = self.embed(tokens)
        for layer in self.layers:
            x = layer(x, self.cos, self.sin)
        return self.head(self.norm(x))


def build(device: str, layers: int = 16, width: int = 2048, tokens: int = 512) -> tuple[nn.Module, Tensor]:
    torch.manual_seed(0)
    dtype = torch.bfloat16 if device == "cuda" else torch.float32
    model = Decoder(layers, width, tokens).to(device, dtype)
    return model, torch.randint(32_000, (2, tokens), device=device)


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
