"""ecmwf/anemoi-core#1344 (2026-08): the trainer sets the number of CPU threads again and again.

Say: GLOBAL_STATE: num_threads changed, from what to what, and the line that calls torch.set_num_threads.
Solve: set it once, before the first compiled call.
"""

import os

import torch
from torch import nn

FIXED = os.environ.get("FIXED") == "1"


def load_batch(workers):
    torch.set_num_threads(workers)
    return torch.randn(8, 32)


torch.manual_seed(0)
model = torch.compile(nn.Sequential(nn.Linear(32, 64), nn.GELU(), nn.Linear(64, 8)), backend="aot_eager")
for step in range(5):
    model(load_batch(1 if FIXED else 1 + step % 3)).sum().backward()
