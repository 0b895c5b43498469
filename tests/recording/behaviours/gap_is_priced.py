"""Eager work between two graphs has a cost.

expect: 0.015 < site("here")["price"]["host_seconds"] < 0.2 and site("here")["price"]["passes"] >= 4
"""

import time

import torch


@torch.compile(backend="eager")
def f(x):
    y = x.sin()
    time.sleep(0.02)  # here
    return y.cos()


for _ in range(6):
    f(torch.ones(4))
