"""Trains a small transformer on several ranks: ``torchrun --nproc-per-node 2 train.py ddp|fsdp2|tensor [--unbroken]``.

The model branches on a tensor in each block, unless ``--unbroken``. In the middle rank 1 alone gets another
number of sequences (with ddp and fsdp2), and so compiles again while the other ranks wait. Rank 0 prints the median of
the last steps as JSON. Runs with NCCL on GPUs, else with Gloo on CPUs, in a smaller size.
"""

import json
import os
import statistics
import sys
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

KIND, UNBROKEN = sys.argv[1], "--unbroken" in sys.argv
GPU = torch.cuda.is_available()
RANK, WORLD = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
WIDTH, LAYERS, TOKENS, BATCH, STEPS = (1024, 6, 512, 8, 60) if GPU else (64, 2, 16, 4, 24)
DEVICE = torch.device("cuda", RANK) if GPU else torch.device("cpu")


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(WIDTH)
        self.up = nn.Linear(WIDTH, 4 * WIDTH)
        self.down = nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = self.norm(x)
        if not UNBROKEN and h.detach().abs().max() > 1000.0:
            h = h / 1000.0
        return x + self.down(torch.relu(self.up(h)))


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.blocks = nn.ModuleList(Block() for _ in range(LAYERS))
        self.head = nn.Linear(WIDTH, WIDTH)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for block in self.blocks:
            x = block(x)
        return self.head(x)


def prepared() -> nn.Module:
    model = Model().to(DEVICE)
    if KIND == "ddp":
        return nn.parallel.DistributedDataParallel(model, device_ids=[RANK] if GPU else None)
    mesh = init_device_mesh(DEVICE.type, (WORLD,))
    for block in model.blocks:
        if KIND == "fsdp2":
            fully_shard(block, mesh=mesh)
        else:
            parallelize_module(block, mesh, {"up": ColwiseParallel(), "down": RowwiseParallel()})
    if KIND == "fsdp2":
        fully_shard(model, mesh=mesh)
    return model


def main() -> None:
    if GPU:
        torch.cuda.set_device(DEVICE)
    dist.init_process_group("nccl" if GPU else "gloo")
    torch.manual_seed(0)
    model = prepared()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, foreach=False)
    compiled = torch.compile(model)
    torch.manual_seed(RANK if KIND != "tensor" else 0)
    times = []
    for step in range(STEPS):
        odd = step == STEPS // 2 and RANK == 1 and KIND != "tensor"
        x = torch.randn(BATCH + (2 if odd else 0), TOKENS, WIDTH, device=DEVICE)
        start = time.perf_counter()
        loss = compiled(x).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        if GPU:
            torch.cuda.synchronize()
        times.append(time.perf_counter() - start)
    last = times[STEPS // 2 + 2 :]
    if RANK == 0:
        print(json.dumps({"kind": KIND, "unbroken": UNBROKEN, "step_ms": 1e3 * statistics.median(last)}))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
