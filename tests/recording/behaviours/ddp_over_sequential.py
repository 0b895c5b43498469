"""DDP over torch.nn.Sequential compiles nothing.

expect: not any(b["origin"] == "user" for b in breaks) and not [g for g in graphs if g["ops"] > 2] and (frames or notices)
"""

import torch
import torch.distributed as dist

dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.ReLU()))
torch.compile(model, backend="eager")(torch.ones(2, 4)).sum().backward()  # here
dist.destroy_process_group()
