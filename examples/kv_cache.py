"""Generates tokens with a one-block transformer that keeps its keys and values from step to step."""

from __future__ import annotations

import argparse
from collections.abc import Iterator

import torch
from torch import nn
from torch.nn import functional as F


class KVCache:
    """The keys and values of all positions so far."""

    def __init__(self) -> None:
        self.keys: torch.Tensor | None = None
        self.values: torch.Tensor | None = None

    def update(self, keys: torch.Tensor, values: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        if self.keys is not None and self.values is not None:
            keys = torch.cat([self.keys, keys], dim=2)
            values = torch.cat([self.values, values], dim=2)
        self.keys, self.values = keys, values
        return keys, values


class Block(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.norm = nn.LayerNorm(width)
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)

    def forward(self, x: torch.Tensor, cache: KVCache) -> torch.Tensor:
        batch, length, width = x.shape
        qkv = self.qkv(self.norm(x)).view(batch, length, 3, self.heads, width // self.heads)
        query, keys, values = qkv.permute(2, 0, 3, 1, 4)
        keys, values = cache.update(keys, values)
        attended = F.scaled_dot_product_attention(query, keys, values, is_causal=length > 1)
        return x + self.out(attended.transpose(1, 2).reshape(batch, length, width))


class Decoder(nn.Module):
    def __init__(self, vocabulary: int = 64, width: int = 32, heads: int = 4, longest: int = 128) -> None:
        super().__init__()
        self.tokens = nn.Embedding(vocabulary, width)
        self.positions = nn.Embedding(longest, width)
        self.block = Block(width, heads)
        self.head = nn.Linear(width, vocabulary)
        self.seen = 0

    def forward(self, ids: torch.Tensor, cache: KVCache) -> torch.Tensor:
        positions = torch.arange(self.seen, self.seen + ids.shape[1], device=ids.device)
        self.seen += ids.shape[1]
        x = self.block(self.tokens(ids) + self.positions(positions), cache)
        logits = self.head(x[:, -1])
        if not torch.isfinite(logits).all():
            raise RuntimeError("the logits overflowed")
        return logits


def sample(logits: torch.Tensor, temperature: float) -> int:
    probabilities = (logits / temperature).softmax(-1)
    return int(probabilities.argmax(-1).item())


def generate(decoder: nn.Module, prompt: torch.Tensor, steps: int, backend: str) -> Iterator[int]:
    cache = KVCache()
    pick = torch.compile(sample, backend=backend)
    ids = prompt
    for _ in range(steps):
        token = pick(decoder(ids, cache), 0.8)
        yield token
        ids = torch.tensor([[token]])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=12)
    parser.add_argument("--backend", default="inductor")
    arguments = parser.parse_args()

    torch.manual_seed(0)
    decoder = torch.compile(Decoder().eval(), backend=arguments.backend)
    stream = torch.compile(generate, backend=arguments.backend)
    with torch.no_grad():
        tokens = list(stream(decoder, torch.tensor([[1, 2, 3, 4]]), arguments.steps, arguments.backend))
    print(" ".join(map(str, tokens)))


if __name__ == "__main__":
    main()
