"""Compile time by phase.

env: TORCHINDUCTOR_CACHE_DIR=.
expect: any("inductor" in c["parts"] and c["seconds"] > 0 for c in compiles)
"""

import torch


@torch.compile
def f(x):  # here
    return x.sin().cos()


f(torch.ones(4))
