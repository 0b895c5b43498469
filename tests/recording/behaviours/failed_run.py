"""Compiled code raises where plain code does not: an operator does not return what its fake says.  One that raises itself
does so in plain code, too.

expect: [(p["kind"], p["verdict"], p["functions"], "Only" in p["consequences"][0]) for p in problems] == [("failed-run", "raises", ["f"], True), ("failed-run", "raises", ["g"], False)] and script["exit_status"] == 1
"""

import contextlib

import torch


@torch.library.custom_op("behaviour::flip", mutates_args=())
def flip(x: torch.Tensor) -> torch.Tensor:
    return x.t().clone()


@flip.register_fake
def _(x):
    return torch.empty_like(x)


@torch.library.custom_op("behaviour::checked", mutates_args=())
def checked(x: torch.Tensor) -> torch.Tensor:
    assert x.sum() < 0
    return x.clone()


@checked.register_fake
def _(x):
    return torch.empty_like(x)


@torch.compile
def f(x):
    return flip(x) + 1


@torch.compile(backend="eager")
def g(x):
    return checked(x) + 1


with contextlib.suppress(AssertionError):
    f(torch.ones(3, 4))
g(torch.ones(2))
