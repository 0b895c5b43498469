"""A graph network of Chebyshev convolutions, trained (torch-geometric)."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from torch_geometric.nn import ChebConv


class Graphs(nn.Module):
    def __init__(self, width: int, depth: int) -> None:
        super().__init__()
        self.layers = nn.ModuleList(ChebConv(width, width, K=3) for _ in range(depth))

    def forward(self, x: torch.Tensor, edges: torch.Tensor) -> torch.Tensor:
        for layer in self.layers:
            x = x + torch.relu(layer(x, edges))
        return x.square().mean()


def build(device: str, tiny: bool) -> tuple[Any, tuple[Any, ...], bool]:
    """The model, its inputs, and whether the backward pass is run."""
    nodes, width, depth = (20, 8, 2) if tiny else (20_000, 128, 4)
    edges = torch.randint(nodes, (2, 10 * nodes), device=device)
    return Graphs(width, depth).to(device), (torch.randn(nodes, width, device=device), edges), True
