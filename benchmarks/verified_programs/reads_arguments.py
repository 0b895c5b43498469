"""Reads its arguments and its standard input, and ends with an exception."""

import sys

import torch

torch.manual_seed(0)
size = int(sys.argv[1])
print("read", len(sys.stdin.read()))


@torch.compile
def scaled(x: torch.Tensor) -> torch.Tensor:
    y = x @ x
    if y.sum() > 0:
        y = y * 2
    return y.cos()


for _ in range(10):
    scaled(torch.randn(size, size))
raise SystemExit("all done")
