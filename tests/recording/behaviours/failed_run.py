"""Compiled code raises where plain code does not: an operator does not return what its fake says.

expect: [(p["kind"], p["verdict"], p["functions"]) for p in problems] == [("failed-run", "raises", ["f"])] and script["exit_status"] == 1
"""

import torch


@torch.library.custom_op("behaviour::flip", mutates_args=())
def flip(x: torch.Tensor) -> torch.Tensor:
    return x.t().clone()


@flip.register_fake
def _(x):
    return torch.empty_like(x)


@torch.compile
def f(x):
    return flip(x) + 1


f(torch.ones(3, 4))
