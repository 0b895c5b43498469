"""A loss over the places that ``nonzero`` and ``where`` find.

indexed_loss.py MODE DEVICE BATCH WIDTH
"""

import sys

import torch

mode, device, batch, width = sys.argv[1], sys.argv[2], *map(int, sys.argv[3:])


def loss(scores: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    error = (torch.sigmoid(scores) - labels) ** 2
    error[torch.where(labels < 0)] = 0.0
    error[(error > 4.0).nonzero(as_tuple=True)] = 4.0
    return (error / torch.nonzero(labels >= 0).size(0)).sum()


torch.manual_seed(0)
compiled = torch.compile(loss, mode=mode)
with torch.no_grad():
    for _ in range(5):
        compiled(torch.randn(batch, width, device=device), torch.randn(batch, width, device=device))
