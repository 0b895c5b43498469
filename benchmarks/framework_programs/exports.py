"""``torch.export`` of five models, strict and not: an MLP, a convolution net with dynamic sizes, BERT, a mixture of
experts that selects rows by a mask, and one that branches on a tensor, which cannot be exported."""

import contextlib

import torch
from torch import nn
from transformers import BertConfig, BertModel


class Experts(nn.Module):
    def __init__(self):
        super().__init__()
        self.router = nn.Linear(8, 2)
        self.experts = nn.ModuleList(nn.Linear(8, 8) for _ in range(2))

    def forward(self, x):
        best = self.router(x).argmax(-1)
        out = torch.zeros_like(x)
        for number, expert in enumerate(self.experts):
            rows = (best == number).nonzero().squeeze(1)
            out = out.index_add(0, rows, expert(x[rows]))
        return out


class Branches(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Linear(8, 8)

    def forward(self, x):
        y = self.net(x)
        if y.sum() > 0:
            y = y * 2
        return y


torch.manual_seed(0)
batch = torch.export.Dim("batch", min=2, max=64)
mlp = nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.Linear(16, 4))
conv = nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten())
bert = BertModel(
    BertConfig(vocab_size=64, hidden_size=32, num_hidden_layers=1, num_attention_heads=4, intermediate_size=64)
).eval()
rows = torch.randn(4, 8)
models = [
    (mlp, (rows,), {"input": {0: batch}}),
    (conv, (torch.randn(4, 3, 16, 16),), {"input": {0: batch}}),
    (bert, (torch.randint(0, 64, (2, 16)),), None),
    (Experts(), (rows,), None),
    (Branches(), (rows,), None),
]
for model, args, sizes in models:
    for strict in (False, True):
        with contextlib.suppress(Exception):
            torch.export.export(model, args, dynamic_shapes=sizes, strict=strict)
