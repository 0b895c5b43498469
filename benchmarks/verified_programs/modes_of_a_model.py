"""Training and evaluation by turns, with batch norm, dropout, no_grad and autocast."""

import torch
from torch import nn


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Linear(64, 64), nn.BatchNorm1d(64), nn.Dropout(0.2))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.body(x)
        if y.mean() > 0:
            y = y - y.mean()
        return y


torch.manual_seed(0)
net = Net()
model = torch.compile(net)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for _ in range(6):
    net.train()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        loss = model(torch.randn(32, 64)).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    net.eval()
    with torch.no_grad():
        model(torch.randn(32, 64))
