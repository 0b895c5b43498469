"""ResNet-18, inference: He et al. 2016, with the layers and the 11,689,512 parameters of torchvision's.

resnet18.py [--device DEVICE] [--batch N] [--side PIXELS]
"""

import argparse

import torch
from torch import nn
from torch.nn import functional as F

parser = argparse.ArgumentParser()
parser.add_argument("--device", default="cpu")
parser.add_argument("--batch", type=int, default=16)
parser.add_argument("--side", type=int, default=224)
given = parser.parse_args()


class Block(nn.Module):
    def __init__(self, width: int, wider: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(width, wider, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(wider)
        self.conv2 = nn.Conv2d(wider, wider, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(wider)
        self.shortcut = nn.Sequential()
        if stride > 1:
            self.shortcut = nn.Sequential(nn.Conv2d(width, wider, 1, stride, bias=False), nn.BatchNorm2d(wider))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = F.relu(self.bn1(self.conv1(x)))
        return F.relu(self.bn2(self.conv2(y)) + self.shortcut(x))


class ResNet18(nn.Module):
    def __init__(self, classes: int = 1000) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 64, 7, 2, 3, bias=False)
        self.bn = nn.BatchNorm2d(64)
        blocks = []
        width = 64
        for wider, stride in ((64, 1), (128, 2), (256, 2), (512, 2)):
            blocks += [Block(width, wider, stride), Block(wider, wider, 1)]
            width = wider
        self.blocks = nn.Sequential(*blocks)
        self.head = nn.Linear(width, classes)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        x = F.max_pool2d(F.relu(self.bn(self.conv(images))), 3, 2, 1)
        return self.head(self.blocks(x).mean(dim=(2, 3)))


torch.manual_seed(0)
model = ResNet18().to(given.device).eval()
compiled = torch.compile(model)
images = torch.randn(given.batch, 3, given.side, given.side, device=given.device)
with torch.no_grad():
    for _ in range(5):
        compiled(images)
