"""A module that is compiled as a part of another one is called as it is; what compares both is no such call.

expect: [(p["site"]["line"], p["functions"], p["count"] > 1 or p["cost"] > 0.05) for p in problems] == [(line("plain"), ["Net.forward"], True)] and problems[0]["id"] == "plain-calls"
"""

import time

import torch
from torch import nn


class Net(nn.Module):
    def forward(self, x):
        return x.sin().cos()


model, teacher = Net(), Net()
task = torch.compile(nn.Sequential(model, nn.ReLU()), backend="eager")
x = torch.ones(4)
task(x)
end = time.perf_counter() + 0.4
while time.perf_counter() < end:
    model(x)  # plain
while time.perf_counter() < end + 0.2:
    teacher(x)
    task(x)


def timed(function):
    ended = time.perf_counter() + 0.2
    function(x)
    while time.perf_counter() < ended:
        function(x)


loss = Net()
timed(torch.compile(loss, backend="eager"))
timed(loss)
