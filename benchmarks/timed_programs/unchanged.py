"""A small model of one of five kinds.

python unchanged.py KIND WIDTH infer|train DEVICE
"""

import sys

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class Dense(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: Tensor) -> Tensor:
        hidden = F.gelu(self.up(x))
        return x + self.down(hidden)


class Gates(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.randn(width))

    def forward(self, x: Tensor) -> Tensor:
        hidden = torch.sigmoid(x * self.scale) * torch.tanh(x)
        return hidden.cos() + hidden.square() * x


class Attention(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = self.qkv(x).unflatten(-1, (-1, 16)).transpose(1, 2).chunk(3, dim=1)
        hidden = F.scaled_dot_product_attention(q, k, v)
        return x + self.out(hidden.transpose(1, 2).flatten(2))


class Convolution(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.inner = nn.Conv1d(32, 32, 3, padding=1)
        self.norm = nn.LayerNorm(width)

    def forward(self, x: Tensor) -> Tensor:
        hidden = F.relu(self.norm(self.inner(x)))
        return x + hidden


class Broken(nn.Module):
    """Breaks the graph, and the change does not remove that."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.inner = nn.Linear(width, width)

    def forward(self, x: Tensor) -> Tensor:
        hidden = self.inner(x).relu()
        if hidden.sum() > 0:
            hidden = hidden / hidden.amax()
        return x + hidden


KINDS = {"dense": Dense, "gates": Gates, "attention": Attention, "convolution": Convolution, "broken": Broken}

if __name__ == "__main__":
    kind, width, way, device = sys.argv[1:]
    torch.manual_seed(0)
    model = nn.Sequential(*(KINDS[kind](int(width)) for _ in range(3))).to(device).train(way == "train")
    compiled = torch.compile(model)
    with torch.set_grad_enabled(way == "train"):
        for _ in range(100):
            out = compiled(torch.randn(8, 32, int(width), device=device))
            if way == "train":
                out.sum().backward()
