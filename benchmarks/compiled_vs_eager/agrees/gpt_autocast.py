"""Two GPT blocks with autocast to bfloat16, rotary positions and RMS normalization."""

import torch
from torch import nn
from torch.nn import functional as F


def rotate(x):
    first, second = x.chunk(2, dim=-1)
    return torch.cat((-second, first), dim=-1)


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norms = nn.ModuleList([nn.RMSNorm(width), nn.RMSNorm(width)])
        self.qkv, self.out = nn.Linear(width, 3 * width, bias=False), nn.Linear(width, width, bias=False)
        self.gate, self.up, self.down = nn.Linear(width, 128), nn.Linear(width, 128), nn.Linear(128, width)

    def forward(self, x, cos, sin):
        q, k, v = (
            one.unflatten(-1, (self.heads, -1)).transpose(1, 2) for one in self.qkv(self.norms[0](x)).chunk(3, -1)
        )
        q, k = q * cos + rotate(q) * sin, k * cos + rotate(k) * sin
        x = x + self.out(F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(2))
        h = self.norms[1](x)
        return x + self.down(F.silu(self.gate(h)) * self.up(h))


class GPT(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.head = nn.Embedding(100, 64), nn.Linear(64, 100, bias=False)
        self.blocks = nn.ModuleList([Block(64, 4), Block(64, 4)])

    def forward(self, tokens):
        angles = torch.outer(torch.arange(tokens.shape[1]), 1 / 100 ** (torch.arange(8) / 8)).repeat(1, 2)
        x = self.embed(tokens)
        for block in self.blocks:
            x = block(x, angles.cos(), angles.sin())
        return self.head(x)


torch.manual_seed(0)
model = GPT()
optimizer = torch.optim.AdamW(model.parameters(), 1e-3)
compiled = torch.compile(model)
for _ in range(4):
    tokens = torch.randint(100, (4, 33))
    with torch.autocast("cpu", torch.bfloat16):
        logits = compiled(tokens[:, :-1])
    F.cross_entropy(logits.flatten(0, 1).float(), tokens[:, 1:].flatten()).backward()
    optimizer.step()
    optimizer.zero_grad()
