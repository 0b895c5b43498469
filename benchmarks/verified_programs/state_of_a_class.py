"""Numbers, a list and a tensor that a class and a module hold, changed by each call."""

import torch


class Statistics:
    seen = {"calls": 0}
    rows: list[int] = []
    total = torch.zeros(())


HISTORY: list[int] = []


class Net(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(64, 64)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        Statistics.seen["calls"] += 1
        Statistics.rows.append(x.shape[0])
        y = self.linear(x)
        if y.sum() > 0:
            y = y * 2
        else:
            y = y * 3
        Statistics.total.add_(y.detach().abs().sum())
        HISTORY.append(len(Statistics.rows))
        return y * Statistics.seen["calls"]


torch.manual_seed(0)
model = torch.compile(Net())
for _ in range(10):
    model(torch.randn(32, 64))
