"""A method of a compiled module goes to the original.

expect: [(p["kind"], p["site"]["line"], p["functions"]) for p in problems] == [("plain-calls", line("here"), ["Net.step"])]
"""

import torch
from torch import nn


class Net(nn.Module):
    def forward(self, x):
        return x.sin()

    def step(self, x):
        return self.forward(x) + 1


net = torch.compile(Net(), backend="eager")
net.step(torch.ones(4))  # here
