"""A multilayer perceptron and SGD."""

import torch

torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(32, 64), torch.nn.ReLU(), torch.nn.LayerNorm(64), torch.nn.Linear(64, 10))
optimizer = torch.optim.SGD(model.parameters(), 0.1)
compiled = torch.compile(model)
for _ in range(4):
    loss = torch.nn.functional.cross_entropy(compiled(torch.randn(16, 32)), torch.randint(10, (16,)))
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
