"""A small UNet of a diffusion model, with group normalization, time embedding and skips."""

import math

import torch
from torch import nn
from torch.nn import functional as F


class Residual(nn.Module):
    def __init__(self, before, after):
        super().__init__()
        self.norms = nn.ModuleList([nn.GroupNorm(4, before), nn.GroupNorm(4, after)])
        self.convs = nn.ModuleList([nn.Conv2d(before, after, 3, padding=1), nn.Conv2d(after, after, 3, padding=1)])
        self.time, self.skip = nn.Linear(32, after), nn.Conv2d(before, after, 1)

    def forward(self, x, time):
        h = self.convs[0](F.silu(self.norms[0](x))) + self.time(time)[:, :, None, None]
        return self.convs[1](F.silu(self.norms[1](h))) + self.skip(x)


class UNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.last = nn.Conv2d(3, 16, 3, padding=1), nn.Conv2d(16, 3, 3, padding=1)
        self.down, self.middle, self.up = Residual(16, 32), Residual(32, 32), Residual(48, 16)

    def forward(self, x, step):
        angles = step[:, None] * torch.exp(torch.arange(16) * (-math.log(1000.0) / 16))
        time = torch.cat([angles.sin(), angles.cos()], dim=-1)
        first = self.first(x)
        h = self.middle(F.avg_pool2d(self.down(first, time), 2), time)
        h = F.interpolate(h, scale_factor=2, mode="nearest")
        return self.last(self.up(torch.cat([h, first], dim=1), time))


torch.manual_seed(0)
model = UNet()
compiled = torch.compile(model)
for _ in range(4):
    image, noise, step = torch.randn(2, 3, 16, 16), torch.randn(2, 3, 16, 16), torch.randint(1000, (2,))
    F.mse_loss(compiled(image + noise, step), noise).backward()
