"""pytorch/pytorch#150702 (2025-04): a diffusion transformer at several widths and heights; patches and a window of positions.

Say: the slice of the position table asks whether the window is the whole table: this line is what compiles a dynamic version again.
Solve: dynamic=True from the start, and the window by arithmetic in place of slices; torch's use_duck_shape=False for height == width.
"""

import os

import torch
from torch import nn

FIXED = os.environ.get("FIXED") == "1"


class Patches(nn.Module):
    def __init__(self, dim=32, side=16, patch=2):
        super().__init__()
        self.proj, self.side, self.patch = nn.Linear(4 * patch**2, dim), side, patch
        self.table = nn.Parameter(torch.randn(side * side, dim) * 0.02)

    def forward(self, latents):
        b, c, height, width = latents.shape
        h, w = height // self.patch, width // self.patch
        x = latents.view(b, c, h, self.patch, w, self.patch).permute(0, 2, 4, 1, 3, 5).flatten(3).flatten(1, 2)
        index = torch.arange(self.side**2).view(self.side, self.side)
        top, left = self.side // 2 - h // 2, self.side // 2 - w // 2
        if FIXED:
            window = ((torch.arange(h) + top)[:, None] * self.side + torch.arange(w) + left).flatten()
        else:
            window = index[top : top + h, left : left + w].flatten()
        return self.proj(x) + self.table[window]


torch.manual_seed(0)
model = torch.compile(Patches(), dynamic=True if FIXED else None, backend="aot_eager")
with torch.no_grad():
    for height, width in ((16, 24), (24, 16), (32, 32), (8, 20)):
        out = model(torch.randn(1, 4, height, width))
print(out.shape)
