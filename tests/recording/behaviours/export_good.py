"""A module is exported, with Dynamo and without: that is no compiling, and nothing is wrong.

expect: not (breaks or frames or graphs or targets or problems or compiles) and [(e["way"], e["name"], e["strict"], e["status"], e["ops"], e["caller"]["line"]) for e in exports] == [("export", "Net", False, "done", 2, line("plain")), ("export", "Net", True, "done", 2, line("strict"))]
"""

import torch
from torch.export import export


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(8, 8)

    def forward(self, x):
        return torch.relu(self.linear(x))


export(Net(), (torch.ones(4, 8),))  # plain
export(Net(), (torch.ones(4, 8),), strict=True)  # strict
