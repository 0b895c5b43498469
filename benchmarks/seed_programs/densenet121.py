"""DenseNet-121, training: Huang et al. 2017, with torchvision's layers; 6,964,106 parameters for CIFAR-10's classes.

densenet121.py [--device DEVICE] [--batch N] [--side PIXELS] [--blocks LAYERS ...] [--classes N]

As is usual the model is compiled; the loss and the optimizer are not.
"""

import argparse

import torch
from torch import nn
from torch.nn import functional as F

parser = argparse.ArgumentParser()
parser.add_argument("--device", default="cpu")
parser.add_argument("--batch", type=int, default=64)
parser.add_argument("--side", type=int, default=224)
parser.add_argument("--blocks", type=int, nargs="+", default=[6, 12, 24, 16])
parser.add_argument("--classes", type=int, default=10)
given = parser.parse_args()
GROWTH = 32


class Layer(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm1 = nn.BatchNorm2d(width)
        self.conv1 = nn.Conv2d(width, 4 * GROWTH, 1, bias=False)
        self.norm2 = nn.BatchNorm2d(4 * GROWTH)
        self.conv2 = nn.Conv2d(4 * GROWTH, GROWTH, 3, padding=1, bias=False)

    def forward(self, features: list[torch.Tensor]) -> torch.Tensor:
        x = self.conv1(F.relu(self.norm1(torch.cat(features, 1))))
        return self.conv2(F.relu(self.norm2(x)))


class Block(nn.Module):
    def __init__(self, width: int, layers: int) -> None:
        super().__init__()
        self.layers = nn.ModuleList(Layer(width + GROWTH * number) for number in range(layers))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        features = [x]
        for layer in self.layers:
            features.append(layer(features))
        return torch.cat(features, 1)


class Transition(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm = nn.BatchNorm2d(width)
        self.conv = nn.Conv2d(width, width // 2, 1, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.avg_pool2d(self.conv(F.relu(self.norm(x))), 2)


class DenseNet(nn.Module):
    def __init__(self, blocks: list[int], classes: int) -> None:
        super().__init__()
        width = 64
        self.conv = nn.Conv2d(3, width, 7, 2, 3, bias=False)
        self.norm1 = nn.BatchNorm2d(width)
        parts: list[nn.Module] = []
        for number, layers in enumerate(blocks):
            if number > 0:
                parts.append(Transition(width))
                width //= 2
            parts.append(Block(width, layers))
            width += GROWTH * layers
        self.parts = nn.Sequential(*parts)
        self.norm2 = nn.BatchNorm2d(width)
        self.head = nn.Linear(width, classes)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        x = F.max_pool2d(F.relu(self.norm1(self.conv(images))), 3, 2, 1)
        x = F.relu(self.norm2(self.parts(x)))
        return self.head(x.mean(dim=(2, 3)))


torch.manual_seed(0)
model = DenseNet(given.blocks, given.classes).to(given.device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
compiled = torch.compile(model)
images = torch.randn(given.batch, 3, given.side, given.side, device=given.device)
labels = torch.randint(given.classes, (given.batch,), device=given.device)
for _ in range(5):
    optimizer.zero_grad()
    F.cross_entropy(compiled(images), labels).backward()
    optimizer.step()
