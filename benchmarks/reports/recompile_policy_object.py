"""pytorch/pytorch#168163 (2025-11): a checkpoint policy is made anew for each call, and compiled code closes over it.

Say: another object each time (context_fn / policy), compared by identity: each call compiles again, to the limit.
Solve: make the policy once, outside of the step.
"""

import functools
import os

import torch
from torch.utils.checkpoint import CheckpointPolicy, checkpoint, create_selective_checkpoint_contexts

FIXED = os.environ.get("FIXED") == "1"


class Policy:
    def __init__(self, ops):
        self.ops = ops

    def __call__(self, ctx, op, *args, **kwargs):
        return CheckpointPolicy.MUST_SAVE if op in self.ops else CheckpointPolicy.PREFER_RECOMPUTE


def make_policy():
    return functools.partial(create_selective_checkpoint_contexts, Policy({torch.ops.aten.mm.default}))


@torch.compile(backend="aot_eager")
def step(x, context_fn):
    return checkpoint(lambda t: torch.mm(t, t).sin().exp(), x, use_reentrant=False, context_fn=context_fn).sum()


torch.manual_seed(0)
policy = make_policy()
x = torch.randn(8, 8, requires_grad=True)
for _ in range(12):
    step(x, policy if FIXED else make_policy()).backward()
