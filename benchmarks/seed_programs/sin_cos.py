"""sin + cos of a tensor: of a scalar (0-d), or of so many elements.

sin_cos.py [--device DEVICE] [--elements N]
"""

import argparse

import torch

parser = argparse.ArgumentParser()
parser.add_argument("--device", default="cpu")
parser.add_argument("--elements", type=int, help="a scalar if it is not given")
given = parser.parse_args()


@torch.compile
def sin_cos(x: torch.Tensor) -> torch.Tensor:
    return torch.sin(x) + torch.cos(x)


torch.manual_seed(0)
shape = () if given.elements is None else (given.elements,)
x = torch.randn(shape, device=given.device)
for _ in range(5):
    sin_cos(x)
