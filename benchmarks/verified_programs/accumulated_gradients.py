"""Gradients of four calls are added before each step of the optimizer."""

import torch
from torch import nn


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(64, 64)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.linear(x)
        print("mean", y.mean().item())
        return torch.relu(y)


torch.manual_seed(0)
net = Net()
model = torch.compile(net)
optimizer = torch.optim.AdamW(net.parameters())
for number in range(16):
    (model(torch.randn(32, 64)).sum() / 4).backward()
    if number % 4 == 3:
        optimizer.step()
        optimizer.zero_grad()
