"""Training: a small GPT, forward and backward."""

import math

import torch
from torch import nn
from torch.nn import functional as F


class Attention(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, length, width = x.shape
        q, k, v = (y.view(batch, length, self.heads, -1).transpose(1, 2) for y in self.qkv(x).split(width, -1))
        scores = q @ k.transpose(-2, -1) / math.sqrt(k.size(-1))
        later = torch.ones(length, length, dtype=torch.bool).triu(1)
        weights = scores.masked_fill(later, float("-inf")).softmax(-1)
        return self.out((weights @ v).transpose(1, 2).reshape(batch, length, width))


class Block(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.first, self.second = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention = Attention(width, heads)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x + self.attention(self.first(x))
        return x + self.mlp(self.second(x))


class GPT(nn.Module):
    def __init__(self, words: int = 256, width: int = 64, heads: int = 4, depth: int = 1) -> None:
        super().__init__()
        self.words = nn.Embedding(words, width)
        self.blocks = nn.Sequential(*(Block(width, heads) for _ in range(depth)))
        self.head = nn.Linear(width, words)

    def forward(self, tokens: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        logits = self.head(self.blocks(self.words(tokens)))
        return F.cross_entropy(logits.flatten(0, 1), targets.flatten())


torch.manual_seed(0)
model = GPT()
parameters = list(model.parameters())
tokens, targets = torch.randint(256, (2, 4, 32))


def step(call):
    loss = call(tokens, targets)
    loss.backward()
    for parameter in parameters:
        parameter.grad = None
    return loss


if __name__ == "__main__":
    compiled = torch.compile(model)
    for _ in range(5):
        step(compiled)
