"""Batches that two worker processes load, in an order that is drawn."""

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Rows(Dataset):
    def __len__(self) -> int:
        return 256

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        return torch.randn(64, generator=torch.Generator().manual_seed(index)), index % 4


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.last = nn.Linear(64, 64), nn.Linear(64, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = torch.relu(self.first(x))
        if torch.isnan(h).any():
            raise FloatingPointError("NaN in the hidden layer")
        if h.mean() > 0.4:
            h = h / h.mean()
        return self.last(h)


def main() -> None:
    torch.manual_seed(0)
    net = Net()
    compiled = torch.compile(net)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for _ in range(2):
        for x, y in DataLoader(Rows(), batch_size=32, shuffle=True, num_workers=2, persistent_workers=True):
            loss = nn.functional.cross_entropy(compiled(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()


if __name__ == "__main__":
    main()
