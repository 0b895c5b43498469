"""The example of ``docs/verify.md``, on any device.

python two_rewrites.py [DEVICE]
"""

import sys

import torch


class Block(torch.nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.up = torch.nn.Linear(width, width)
        self.down = torch.nn.Linear(width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = torch.relu(self.up(x))
        if y.isinf().any():
            y = torch.clamp(y, max=1e4)
        print("block")
        return x + self.down(y)


if __name__ == "__main__":
    device = (sys.argv[1:] or ["cpu"])[0]
    torch.manual_seed(0)
    model = torch.nn.Sequential(Block(32), Block(32)).eval().to(device)
    compiled = torch.compile(model)
    with torch.no_grad():
        for _ in range(100):
            out = compiled(torch.randn(16, 32, device=device))
