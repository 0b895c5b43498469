"""A compiler cache that had what was asked for.

env: TORCHINDUCTOR_CACHE_DIR=.
expect: [u["outcome"] for c in compiles for u in c["caches"] if u["cache"] == "fx_graph"] == ["miss", "hit"]
"""

import torch
import torch._functorch.config

torch._functorch.config.enable_autograd_cache = False


@torch.compile
def f(x):  # here
    return x.tan().cos().sum()


f(torch.ones(5))
torch._dynamo.reset()
f(torch.ones(5))
