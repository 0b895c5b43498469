"""An int attribute of a module that counts.

expect: len(recompiles) == 3 and recompiles[0]["rule"] == "BRK701" and len({r["cause"] for r in recompiles}) == 1
"""

import torch


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.steps = 0

    def forward(self, x):
        self.steps += 1  # here
        return x.sin()


net = torch.compile(Net(), backend="eager")
for _ in range(4):
    net(torch.ones(4))
