"""A compiled optimizer, whose learning rate is a number that a scheduler changes.

expect: "tensor-lr" in [r["name"] for p in problems for r in p["remedies"]] and [r["trigger"]["line"] for r in recompiles] == [line("step")] and {c["function"] for c in compiles} == {"SGD.step", "Optimizer.step"} and breaks[0]["function"] == "Optimizer.step"
"""

import torch

net = torch.nn.Linear(8, 8)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
step = torch.compile(optimizer.step, backend="eager")
scheduler = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.9)
for _ in range(4):
    net(torch.ones(4, 8)).sum().backward()
    step()  # step
    scheduler.step()
    optimizer.zero_grad()
