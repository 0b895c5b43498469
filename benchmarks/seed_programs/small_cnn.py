"""A small CNN on images of the shape of Fashion-MNIST's: training, or inference.

small_cnn.py [--device DEVICE] [--batch N] [--inference]

As is usual the model is compiled; the loss and the optimizer are not.
"""

import argparse

import torch
from torch import nn
from torch.nn import functional as F

parser = argparse.ArgumentParser()
parser.add_argument("--device", default="cpu")
parser.add_argument("--batch", type=int, default=64)
parser.add_argument("--inference", action="store_true")
given = parser.parse_args()


class CNN(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(1, 32, 3, padding=1)
        self.conv2 = nn.Conv2d(32, 64, 3, padding=1)
        self.inner = nn.Linear(64 * 7 * 7, 128)
        self.head = nn.Linear(128, 10)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        x = F.max_pool2d(F.relu(self.conv1(images)), 2)
        x = F.max_pool2d(F.relu(self.conv2(x)), 2)
        return self.head(F.relu(self.inner(x.flatten(1))))


torch.manual_seed(0)
model = CNN().to(given.device)
compiled = torch.compile(model)
images = torch.randn(given.batch, 1, 28, 28, device=given.device)
labels = torch.randint(10, (given.batch,), device=given.device)
if given.inference:
    model.eval()
    with torch.no_grad():
        for _ in range(5):
            compiled(images)
else:
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for _ in range(5):
        optimizer.zero_grad()
        F.cross_entropy(compiled(images), labels).backward()
        optimizer.step()
