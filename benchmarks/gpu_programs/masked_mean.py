"""Statistics over the elements that a mask picks.

masked_mean.py MODE DEVICE BATCH WIDTH
"""

import sys

import torch

mode, device, batch, width = sys.argv[1], sys.argv[2], *map(int, sys.argv[3:])


def statistics(scores: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    error = (torch.sigmoid(scores) - labels).abs()
    positive = error[labels > 0.5].mean()
    negative = error[labels < 0.5].mean()
    worst = error[scores.abs() < 3.0].max()
    return torch.stack([positive, negative, worst])


torch.manual_seed(0)
compiled = torch.compile(statistics, mode=mode)
with torch.no_grad():
    for _ in range(5):
        compiled(torch.randn(batch, width, device=device), torch.rand(batch, width, device=device).round())
