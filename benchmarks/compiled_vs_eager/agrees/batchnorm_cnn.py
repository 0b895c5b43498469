"""A convolution network with batch normalization, channels-last."""

import torch
from torch import nn

torch.manual_seed(0)
layers = [
    *(nn.Conv2d(3, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2)),
    *(nn.Conv2d(16, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(), nn.AdaptiveAvgPool2d(1)),
    *(nn.Flatten(), nn.Linear(32, 10)),
]
model = nn.Sequential(*layers).to(memory_format=torch.channels_last)  # type: ignore[call-overload]
optimizer = torch.optim.AdamW(model.parameters(), 1e-3)
compiled = torch.compile(model)
for _ in range(4):
    images = torch.randn(8, 3, 32, 32).to(memory_format=torch.channels_last)
    nn.functional.cross_entropy(compiled(images), torch.randint(10, (8,))).backward()
    optimizer.step()
    optimizer.zero_grad()
