"""Hooks on a part of a compiled model that are registered after it was compiled: compiled code runs without them. One
is removed before a call, and one is on the compiled model itself, which runs it.

expect: [(p["kind"], p["functions"], p["count"], p["site"]["line"]) for p in problems] == [("late-hooks", ["keep"], 1, line("late"))]
"""

import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(2, 2)

    def forward(self, x):
        return self.inner(x).relu()


net, seen = Net(), []


def keep(module, args, output):
    seen.append(output)


run = torch.compile(net, backend="eager")
run(torch.ones(1, 2))
net.inner.register_forward_hook(keep).remove()
net.register_forward_hook(lambda *_: seen.append(None))
net.inner.register_forward_hook(keep)  # late
run(torch.ones(1, 2))
assert seen == [None]
