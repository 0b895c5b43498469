"""vllm-project/vllm#38933 (2026-04): a compiled helper of the sampler, dynamic=True, recompiles when one request is left.

Say: x.shape[0] was 1: sizes 0 and 1 are compiled apart, also with dynamic=True and mark_dynamic.
Solve: torch._dynamo.mark_unbacked / torch._dynamo.decorators.mark_unbacked(x, 0, min=1), so that 1 is a size like others.
"""

import os

import torch

FIXED = os.environ.get("FIXED") == "1"


@torch.compile(dynamic=True)
def count_greater(logprobs, chosen):
    return (logprobs >= chosen).sum(-1)


torch.manual_seed(0)
for batch in (6, 4, 3, 2, 1, 5, 1, 1):
    logprobs, chosen = torch.randn(batch, 100).log_softmax(-1), torch.randn(batch, 1)
    if FIXED:
        for x in (logprobs, chosen):
            torch._dynamo.decorators.mark_unbacked(x, 0)
    ranks = count_greater(logprobs, chosen)
print(ranks.tolist())
