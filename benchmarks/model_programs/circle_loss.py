"""A ResNet-50 that is trained with a metric loss on the pairs of its batch (pytorch-metric-learning, torchvision)."""

from __future__ import annotations

from typing import Any

import torch
from pytorch_metric_learning.losses import CircleLoss
from torch import nn


class Embedded(nn.Module):
    def __init__(self, body: nn.Module) -> None:
        super().__init__()
        self.body, self.loss = body, CircleLoss()

    def forward(self, images: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        return self.loss(self.body(images), labels)


def build(device: str, tiny: bool) -> tuple[Any, tuple[Any, ...], bool]:
    """The model, its inputs, and whether the backward pass is run."""
    body: nn.Module
    if tiny:
        body = nn.Sequential(nn.Flatten(), nn.Linear(3 * 8 * 8, 16))
    else:
        from torchvision.models import resnet50

        body = resnet50(num_classes=512)
    batch, size = (16, 8) if tiny else (64, 128)
    images = torch.randn(batch, 3, size, size, device=device)
    return Embedded(body).to(device), (images, torch.arange(batch, device=device) % (batch // 4)), True
