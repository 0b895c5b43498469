"""Trains a small network with FSDP2 (fully_shard): torchrun --nproc-per-node 2 examples/fsdp2.py.

With --compile root, the sharded model is compiled: because of FSDP's hooks in its loop over the blocks, its forward
runs eager.  With --compile blocks, the default, each block is compiled before it is sharded.
"""

from __future__ import annotations

import argparse

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard


class Block(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.up = nn.Linear(width, 2 * width)
        self.down = nn.Linear(2 * width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.down(torch.nn.functional.gelu(self.up(self.norm(x))))


class Net(nn.Module):
    def __init__(self, width: int = 32, depth: int = 3) -> None:
        super().__init__()
        self.blocks = nn.ModuleList(Block(width) for _ in range(depth))
        self.head = nn.Linear(width, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for block in self.blocks:
            x = block(x)
        return self.head(x)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=4)
    parser.add_argument("--backend", default="inductor")
    parser.add_argument("--compile", choices=["blocks", "root"], default="blocks")
    arguments = parser.parse_args()

    dist.init_process_group("gloo")
    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    torch.manual_seed(0)
    model = Net()
    for block in model.blocks:
        if arguments.compile == "blocks":
            block.compile(backend=arguments.backend)
        fully_shard(block, mesh=mesh)
    fully_shard(model, mesh=mesh)
    if arguments.compile == "root":
        model.compile(backend=arguments.backend)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    torch.manual_seed(dist.get_rank())
    for step in range(arguments.steps):
        x = torch.randn(16, 32)
        loss = nn.functional.mse_loss(model(x), x.sum(-1, keepdim=True))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if dist.get_rank() == 0:
            print(f"step {step + 1}: loss {loss.item():.3f}")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
