"""A compiler cache that has the graph, for other sizes.

env: TORCHINDUCTOR_CACHE_DIR=.
expect: [bool(u["reason"]) for c in compiles for u in c["caches"] if u["outcome"] == "miss" and u["cache"] == "aotautograd"] == [False, True]
"""

import torch


def f(x):
    y = x.cos()
    return (y, 1) if x.shape[0] < 50 else (y, 2)


for size in (40, 60):
    torch._dynamo.reset()
    torch.compile(f, dynamic=True)(torch.ones(size))
