"""A break in torch's own code is reported separately.

expect: any(b["origin"] == "framework" for b in breaks)
"""

import torch
import torch.distributed as dist

dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(4, 4)

    def forward(self, x):
        return self.layer(x).relu()


model = torch.nn.parallel.DistributedDataParallel(Net())
torch.compile(model, backend="eager")(torch.ones(2, 4))  # here
dist.destroy_process_group()
