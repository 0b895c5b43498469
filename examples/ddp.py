"""Trains a small network with DistributedDataParallel: torchrun --nproc-per-node 2 examples/ddp.py."""

from __future__ import annotations

import argparse

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


class Net(nn.Module):
    def __init__(self, width: int = 512) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(8, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU())
        self.head = nn.Linear(width, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.layers(x)).squeeze(-1)


def batches(rank: int, steps: int) -> list[torch.Tensor]:
    """Each rank has its own part of the data, and the last batch of rank 1 is a short one."""
    generator = torch.Generator().manual_seed(rank)
    sizes = [32] * (steps - 1) + [32 if rank == 0 else 20]
    return [torch.randn(size, 8, generator=generator) for size in sizes]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=4)
    parser.add_argument("--backend", default="inductor")
    arguments = parser.parse_args()

    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(0)
    # Small buckets, so that even this network has several: torch.compile splits the graph at their borders.
    model = DistributedDataParallel(Net(), bucket_cap_mb=1)
    compiled = torch.compile(model, backend=arguments.backend)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for step, x in enumerate(batches(rank, arguments.steps)):
        loss = nn.functional.mse_loss(compiled(x), x.sum(-1))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if rank == 0:
            print(f"step {step + 1}: loss {loss.item():.3f}")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
