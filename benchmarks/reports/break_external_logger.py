"""Lightning-AI/pytorch-lightning#17214 (2023-03): the whole module is compiled, and validation logs through a foreign logger.

Say: Dynamo walks into the logger (csv, files), breaks there, and compiles pieces of the logger; the user's line is the call of it.
Solve: torch.compiler.disable on that method, or compile the network alone; logging stays outside.
"""

import csv
import io
import os

import torch
from torch import nn

FIXED = os.environ.get("FIXED") == "1"


class Logger:
    def __init__(self):
        self.writer = csv.writer(io.StringIO())

    def log(self, **values):
        self.writer.writerow(f"{key}={value}" for key, value in values.items())


class Module(nn.Module):
    def __init__(self):
        super().__init__()
        self.net, self.logger = nn.Linear(16, 4), Logger()

    def forward(self, x, y):
        loss = nn.functional.cross_entropy(self.net(x).relu(), y)
        if not FIXED:
            self.logger.log(stage="val", loss=loss.detach())
        return loss


torch.manual_seed(0)
step = torch.compile(module := Module())
for _ in range(4):
    loss = step(torch.randn(8, 16), torch.randint(0, 4, (8,)))
    if FIXED:
        module.logger.log(stage="val", loss=loss.detach())
