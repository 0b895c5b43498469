"""Detects objects in a batch of images with a small residual network, and prints the number of boxes.

The images are noise and the weights are random: only the code of the model matters.
"""

from __future__ import annotations

import argparse
import logging

import torch
from torch import nn
from torch.nn import functional as F

logger = logging.getLogger("vision")


class ResidualBlock(nn.Module):
    def __init__(self, channels: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(channels, channels, 3, padding=1)
        self.conv2 = nn.Conv2d(channels, channels, 3, padding=1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.relu(x + self.conv2(F.relu(self.conv1(x))))


class Backbone(nn.Module):
    def __init__(self, channels: int, depth: int) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, channels, 7, stride=4, padding=3)
        self.blocks = nn.ModuleList(ResidualBlock(channels) for _ in range(depth))

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        x = self.stem(images)
        for block in self.blocks:
            x = block(x)
            # Keep activations in a sane range.
            if x.abs().max() > 100:
                x = x.clamp(-100, 100)
        return x


class Detector(nn.Module):
    def __init__(self, channels: int = 8, depth: int = 2, classes: int = 10) -> None:
        super().__init__()
        self.backbone = Backbone(channels, depth)
        self.classify = nn.Linear(channels, classes)
        self.locate = nn.Linear(channels, 4)
        self.threshold = 0.1

    def forward(self, images: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        if torch.isnan(images).any():
            raise ValueError("the batch holds NaN")
        features = self.backbone(images)
        logger.debug("features: %s", tuple(features.shape))
        features = features.flatten(2).transpose(1, 2)
        scores = self.classify(features).softmax(-1).amax(-1)
        boxes = self.locate(features).sigmoid()
        keep = scores > self.threshold
        return boxes[keep], scores[keep]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--images", type=int, default=10)
    parser.add_argument("--batch-size", type=int, default=4)
    parser.add_argument("--backend", default="inductor")
    arguments = parser.parse_args()

    torch.manual_seed(0)
    dataset = torch.rand(arguments.images, 3, 32, 32)
    detector = torch.compile(Detector().eval(), backend=arguments.backend)
    found = 0
    with torch.inference_mode():
        for batch in dataset.split(arguments.batch_size):
            boxes, _ = detector(batch)
            found += len(boxes)
    print(f"{found} boxes in {len(dataset)} images")


if __name__ == "__main__":
    main()
