"""An image network whose output is judged by its visual information fidelity (torchmetrics)."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from torchmetrics.functional.image import visual_information_fidelity


class Judged(nn.Module):
    def __init__(self, width: int, depth: int) -> None:
        super().__init__()
        inner = [layer for _ in range(depth) for layer in (nn.Conv2d(width, width, 3, padding=1), nn.ReLU())]
        self.net = nn.Sequential(nn.Conv2d(3, width, 3, padding=1), *inner, nn.Conv2d(width, 3, 3, padding=1))

    def forward(self, image: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        return visual_information_fidelity(image + self.net(image), target)


def build(device: str, tiny: bool) -> tuple[Any, tuple[Any, ...], bool]:
    """The model, its inputs, and whether the backward pass is run."""
    model = Judged(8, 1) if tiny else Judged(64, 6)
    shape = (2, 3, 48, 48) if tiny else (8, 3, 256, 256)
    return model.to(device).eval(), (torch.rand(shape, device=device), torch.rand(shape, device=device)), False
