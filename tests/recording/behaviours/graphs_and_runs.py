"""Graphs with their operations and runs.

expect: [(g["ops"], g["runs"]) for g in graphs] == [(2, 7)] and {l["line"] for l in graphs[0]["lines"]} == {line("here")}
"""

import torch


@torch.compile(backend="eager")
def f(x):
    return x.sin().cos()  # here


for _ in range(7):
    f(torch.ones(4))
