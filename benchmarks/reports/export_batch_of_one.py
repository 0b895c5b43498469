"""pytorch/pytorch#121038 (2024-03): torch.export with a dynamic batch, and an example of batch 1.

Say: the size of the example is 1, and sizes 0 and 1 are fixed; no line of the model fixes it.
Solve: an example with a batch of 2 or more.
"""

import os

import torch
from torch import nn

FIXED = os.environ.get("FIXED") == "1"


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.head = nn.Conv2d(3, 8, 3, padding=1), nn.Linear(8, 10)

    def forward(self, x):
        return self.head(torch.relu(self.conv(x)).mean((2, 3)))


torch.manual_seed(0)
model = Classifier().eval()
example = torch.randn(2 if FIXED else 1, 3, 16, 16)
program = torch.export.export(model, (example,), dynamic_shapes={"x": {0: torch.export.Dim("batch", max=32)}})
print(program.module()(torch.randn(5, 3, 16, 16)).shape)
