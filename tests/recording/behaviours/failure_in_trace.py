"""An operator's shapes cannot be computed, in a function that the compiled one calls.

expect: frame("step")["failed_at"]["line"] == line("fails") and frame("step")["failed_code"].startswith("return") and \
[c["function"] for c in frame("step")["stack"]][-3:] == [None, "step", "double"]
"""

import torch


@torch.library.custom_op("behaviours::doubled", mutates_args=())
def doubled(x: torch.Tensor) -> torch.Tensor:
    return x * 2


@doubled.register_fake
def _(x):
    raise ValueError("not of that shape")


def double(x):
    return torch.ops.behaviours.doubled(x)  # fails


@torch.compile(backend="eager")
def step(x):
    return double(x.sin())


step(torch.ones(4))
