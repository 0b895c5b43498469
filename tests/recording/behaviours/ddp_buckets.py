"""DistributedDataParallel splits a graph at its buckets.

expect: any(len(g["split_by_ddp"]) > 1 for g in graphs)
"""

import torch
import torch.distributed as dist

dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = torch.nn.ModuleList(torch.nn.Linear(512, 512) for _ in range(4))

    def forward(self, x):
        for layer in self.layers:
            x = layer(x).relu()  # here
        return x


model = torch.nn.parallel.DistributedDataParallel(Net(), bucket_cap_mb=1)
torch.compile(model, backend="aot_eager")(torch.ones(2, 512)).sum().backward()
dist.destroy_process_group()
