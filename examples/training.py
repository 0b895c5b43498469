"""Trains a small regression network for a few steps, and evaluates it now and then."""

from __future__ import annotations

import argparse
import time

import torch
from torch import nn


class Net(nn.Module):
    def __init__(self, width: int = 32) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(8, width), nn.ReLU(), nn.Dropout(0.1), nn.Linear(width, 1))
        self.calls = 0

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.calls += 1
        if self.calls == 1:
            print("first batch:", tuple(x.shape))
        return self.layers(x).squeeze(-1)


def train_step(
    model: nn.Module, optimizer: torch.optim.Optimizer, x: torch.Tensor, y: torch.Tensor
) -> tuple[float, float]:
    started = time.perf_counter()
    loss = nn.functional.mse_loss(model(x), y)
    if torch.isnan(loss):
        return float("nan"), 0.0
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    return loss.item(), time.perf_counter() - started


def evaluate(model: nn.Module, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    try:
        with torch.no_grad():
            errors = (model(x) - y).abs()
            worst = errors.max().item()
        return errors.mean() / max(worst, 1e-6)
    except RuntimeError as error:
        raise RuntimeError("the evaluation failed") from error


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=6)
    parser.add_argument("--backend", default="inductor")
    arguments = parser.parse_args()

    torch.manual_seed(0)
    x = torch.randn(128, 8)
    y = x.sum(-1)
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    step = torch.compile(train_step, backend=arguments.backend)
    measure = torch.compile(evaluate, backend=arguments.backend)
    for number in range(arguments.steps):
        batch = torch.randint(0, len(x), (32,))
        model.train()
        loss, _ = step(model, optimizer, x[batch], y[batch])
        if number % 3 == 2:
            model.eval()
            print(f"step {number + 1}: loss {loss:.3f}, error {measure(model, x, y).item():.3f}")


if __name__ == "__main__":
    main()
