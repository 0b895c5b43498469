"""Backward passes that compiled autograd captured again, at the lines that call them.

expect: [c["function"] for c in compiles] == ["steps (backward)"] * 3 and {g["site"]["line"] for g in graphs} == {line("first"), line("second"), line("third")} and "eval_with_key" not in repr([compiles, graphs, recompiles])
"""

import torch
from torch._dynamo.compiled_autograd import _enable

net = torch.nn.Linear(8, 8)
x = torch.ones(4, 8)


def steps():
    with _enable(torch.compile(backend="eager")):
        net(x).sum().backward()  # first
        net(x).sum().backward()  # second
        (2 * net(x).sum()).backward()  # third


torch._dynamo.reset()
steps()
