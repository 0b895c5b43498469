"""Poses of cameras from key points that a network moves (kornia)."""

from __future__ import annotations

from typing import Any

import torch
from kornia.geometry.calibration import solve_pnp_dlt
from torch import nn


class Poses(nn.Module):
    def __init__(self, width: int, depth: int) -> None:
        super().__init__()
        inner = [layer for _ in range(depth) for layer in (nn.Linear(width, width), nn.SiLU())]
        self.net = nn.Sequential(nn.Linear(2, width), nn.SiLU(), *inner, nn.Linear(width, 2))

    def forward(self, world: torch.Tensor, image: torch.Tensor, camera: torch.Tensor) -> torch.Tensor:
        return solve_pnp_dlt(world, image + 1e-3 * self.net(image), camera)


def build(device: str, tiny: bool) -> tuple[Any, tuple[Any, ...], bool]:
    """The model, its inputs, and whether the backward pass is run."""
    batch, points, width, depth = (2, 8, 8, 1) if tiny else (64, 32, 256, 4)
    world = torch.rand(batch, points, 3, device=device) + torch.tensor([0.0, 0.0, 4.0], device=device)
    camera = torch.tensor([[2.0, 0.0, 0.5], [0.0, 2.0, 0.5], [0.0, 0.0, 1.0]], device=device).expand(batch, 3, 3)
    projected = world @ camera.transpose(1, 2)
    image = projected[..., :2] / projected[..., 2:]
    return Poses(width, depth).to(device).eval(), (world, image, camera.contiguous()), False
