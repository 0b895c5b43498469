"""The programs over which ``recording_overhead.py`` measures.  Run as a script, it compiles one and prints the time.

python benchmarks/recording_programs.py NAME BACKEND
"""

from __future__ import annotations

import gc
import json
import sys
import time
from collections.abc import Callable

import torch
from torch import nn

Step = Callable[[], object]


class Mlp(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.up = nn.Linear(64, 256)
        self.down = nn.Linear(256, 64)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.down(torch.relu(self.up(x)))


class Block(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.norms = nn.ModuleList([nn.LayerNorm(width), nn.LayerNorm(width)])
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, length, width = x.shape
        q, k, v = self.qkv(self.norms[0](x)).reshape(batch, length, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        mixed = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(mixed.transpose(1, 2).reshape(batch, length, width))
        return x + self.mlp(self.norms[1](x))


class Transformer(nn.Module):
    def __init__(self, width: int = 128, heads: int = 4, layers: int = 4) -> None:
        super().__init__()
        self.blocks = nn.ModuleList([Block(width, heads) for _ in range(layers)])

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for block in self.blocks:
            x = block(x)
        return x


class Broken(nn.Module):
    """Eight breaks with next to nothing between them: the most that recording can cost."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x.sin()
        torch._dynamo.graph_break()
        x = x.cos()
        torch._dynamo.graph_break()
        x = x.sin()
        torch._dynamo.graph_break()
        x = x.cos()
        torch._dynamo.graph_break()
        x = x.sin()
        torch._dynamo.graph_break()
        x = x.cos()
        torch._dynamo.graph_break()
        x = x.sin()
        torch._dynamo.graph_break()
        x = x.cos()
        torch._dynamo.graph_break()
        return x.sin()


def mlp(backend: str) -> Step:
    return _training(Mlp(), torch.randn(128, 64), backend)


def transformer(backend: str) -> Step:
    return _training(Transformer(), torch.randn(4, 64, 128), backend)


def broken(backend: str) -> Step:
    model, x = torch.compile(Broken(), backend=backend), torch.randn(8)
    return lambda: model(x)


def _training(model: nn.Module, x: torch.Tensor, backend: str) -> Step:
    compiled = torch.compile(model, backend=backend)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)

    def step() -> None:
        optimizer.zero_grad()
        (compiled(x) - x).square().mean().backward()
        optimizer.step()

    return step


PROGRAMS = {"mlp": mlp, "transformer": transformer, "broken": broken}


def main() -> None:
    name, backend = sys.argv[1:]
    torch.manual_seed(0)
    step = PROGRAMS[name](backend)
    # A full collection takes a third of the shortest compilation, and when it is due depends on what was imported.
    gc.collect()
    wall, cpu = time.perf_counter(), time.process_time()
    for _ in range(3):
        step()
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    print(json.dumps({"wall": wall, "cpu": cpu, "whole": time.process_time()}))


if __name__ == "__main__":
    main()
