"""e3nn/e3nn#497 (2024-12): the library makes its inner operations with TorchScript, and the user compiles the model.

Say: a scripted module is foreign to Dynamo: a call of it (by name and line) breaks, once for each layer.
Solve: do not script (the library's setting, here scripted=False): the plain function compiles.
"""

import os

import torch
from torch import nn

FIXED = os.environ.get("FIXED") == "1"


class Product(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.w = nn.Parameter(torch.randn(dim, dim, dim) / dim)

    def forward(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return torch.einsum("bi,bj,ijk->bk", a, b, self.w)


class Model(nn.Module):
    def __init__(self, dim=8, depth=3, scripted=True):
        super().__init__()
        products = [Product(dim) for _ in range(depth)]
        self.layers = nn.ModuleList([torch.jit.script(p) if scripted else p for p in products])

    def forward(self, x, sh):
        for layer in self.layers:
            x = torch.tanh(layer(x, sh)) + x
        return x.sum()


torch.manual_seed(0)
model = torch.compile(Model(scripted=not FIXED), backend="aot_eager")
for _ in range(4):
    model(torch.randn(16, 8), torch.randn(16, 8)).backward()
