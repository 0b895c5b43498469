"""Features of points that are rotated by angles of predicted matrices (e3nn)."""

from __future__ import annotations

from typing import Any

import torch
from e3nn import o3
from torch import nn


class Rotated(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.irreps = o3.Irreps("16x0e + 16x1o + 16x2e")
        self.net = nn.Sequential(nn.Linear(self.irreps.dim, width), nn.SiLU(), nn.Linear(width, 16))
        self.degrees = (0, 1, 2)

    def forward(self, features: torch.Tensor, rotations: torch.Tensor) -> torch.Tensor:
        alpha, beta, gamma = o3.matrix_to_angles(rotations)
        parts, first = [], 0
        for degree in self.degrees:
            size = 2 * degree + 1
            part = features[:, first : first + 16 * size].unflatten(1, (16, size))
            parts.append((part @ o3.wigner_D(degree, alpha, beta, gamma).transpose(1, 2)).flatten(1))
            first += 16 * size
        return self.net(torch.cat(parts, dim=1))


def build(device: str, tiny: bool) -> tuple[Any, tuple[Any, ...], bool]:
    """The model, its inputs, and whether the backward pass is run."""
    # e3nn computes what does not depend on its inputs on the default device, and asserts more digits than TF32 has.
    torch.set_default_device(device)
    torch.backends.cuda.matmul.allow_tf32 = False
    count, width = (8, 16) if tiny else (65_536, 512)
    model = Rotated(width).to(device).eval()
    rotations = o3.rand_matrix(count).to(device)
    return model, (torch.randn(count, model.irreps.dim, device=device), rotations), False
