"""A compiler cache that had nothing.

env: TORCHINDUCTOR_CACHE_DIR=.
expect: any(u["cache"] == "fx_graph" and (u["outcome"], u["reason"]) == ("miss", None) for c in compiles for u in c["caches"])
"""

import torch


@torch.compile
def f(x):  # here
    return x.tan().cos().sum()


f(torch.ones(5))
