"""BERT-base with its pooler, inference: Devlin et al. 2019, 109,482,240 parameters, random.

bert_base.py [--device DEVICE] [--batch N] [--tokens N] [--layers N]
"""

import argparse

import torch
from torch import nn
from torch.nn import functional as F

parser = argparse.ArgumentParser()
parser.add_argument("--device", default="cpu")
parser.add_argument("--batch", type=int, default=1)
parser.add_argument("--tokens", type=int, default=8)
parser.add_argument("--layers", type=int, default=12)
given = parser.parse_args()
WIDTH, HEADS, VOCABULARY, POSITIONS, EPSILON = 768, 12, 30522, 512, 1e-12


class Embeddings(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(VOCABULARY, WIDTH, padding_idx=0)
        self.positions = nn.Embedding(POSITIONS, WIDTH)
        self.types = nn.Embedding(2, WIDTH)
        self.norm = nn.LayerNorm(WIDTH, eps=EPSILON)
        self.dropout = nn.Dropout(0.1)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        places = torch.arange(tokens.shape[1], device=tokens.device)
        x = self.words(tokens) + self.types(torch.zeros_like(tokens)) + self.positions(places)
        return self.dropout(self.norm(x))


class Layer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.query = nn.Linear(WIDTH, WIDTH)
        self.key = nn.Linear(WIDTH, WIDTH)
        self.value = nn.Linear(WIDTH, WIDTH)
        self.out = nn.Linear(WIDTH, WIDTH)
        self.norm1 = nn.LayerNorm(WIDTH, eps=EPSILON)
        self.up = nn.Linear(WIDTH, 4 * WIDTH)
        self.down = nn.Linear(4 * WIDTH, WIDTH)
        self.norm2 = nn.LayerNorm(WIDTH, eps=EPSILON)
        self.dropout = nn.Dropout(0.1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        query, key, value = (self.heads(of(x)) for of in (self.query, self.key, self.value))
        mixed = F.scaled_dot_product_attention(query, key, value)
        mixed = self.out(mixed.transpose(1, 2).flatten(2))
        x = self.norm1(x + self.dropout(mixed))
        return self.norm2(x + self.dropout(self.down(F.gelu(self.up(x)))))

    @staticmethod
    def heads(x: torch.Tensor) -> torch.Tensor:
        return x.unflatten(2, (HEADS, WIDTH // HEADS)).transpose(1, 2)


class Bert(nn.Module):
    def __init__(self, layers: int) -> None:
        super().__init__()
        self.embeddings = Embeddings()
        self.layers = nn.ModuleList(Layer() for _ in range(layers))
        self.pooler = nn.Linear(WIDTH, WIDTH)

    def forward(self, tokens: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        x = self.embeddings(tokens)
        for layer in self.layers:
            x = layer(x)
        return x, torch.tanh(self.pooler(x[:, 0]))


torch.manual_seed(0)
model = Bert(given.layers).to(given.device).eval()
compiled = torch.compile(model)
tokens = torch.randint(VOCABULARY, (given.batch, given.tokens), device=given.device)
with torch.no_grad():
    for _ in range(5):
        compiled(tokens)
