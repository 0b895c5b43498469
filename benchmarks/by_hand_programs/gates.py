"""Inference: gated recurrent units without matrices, a few steps of them in a row."""

import torch
from torch import nn


class Gates(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.keep = nn.Parameter(torch.randn(2, width))
        self.take = nn.Parameter(torch.randn(2, width))

    def forward(self, state: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        kept = torch.sigmoid(state * self.keep[0] + self.keep[1])
        taken = torch.tanh(x * self.take[0] + self.take[1])
        return kept * state + (1 - kept) * taken


class Cells(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.gates = Gates(width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        state = torch.zeros_like(x[0])
        for one in x:
            state = self.gates(state, one)
        return state


torch.manual_seed(0)
model = Cells(128).eval()
x = torch.randn(8, 64, 128)


def step(call):
    with torch.no_grad():
        return call(x)


if __name__ == "__main__":
    compiled = torch.compile(model)
    for _ in range(5):
        step(compiled)
