"""An assertion of Dynamo's about itself, which plain code does not meet.

expect: [one["name"] for problem in problems for one in problem["remedies"]] == ["run-outside"]
"""

import contextlib

import torch


@torch.compile(backend="eager")
def step(x):
    return torch.autocast("cpu")(x.sin())


with contextlib.suppress(AssertionError):
    step(torch.ones(4))
