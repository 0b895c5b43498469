"""A compiler cache that has nothing since a setting changed.

env: TORCHINDUCTOR_CACHE_DIR=.
expect: [u["miss"] for c in compiles for u in c["caches"] if u["cache"] == "fx_graph"] == [{"kind": "new", "guards": None, "than": None, "changes": []}, {"kind": "changed", "guards": None, "than": "0/0", "changes": [{"name": "inductor_config[epilogue_fusion]", "old": "True", "new": "False"}]}]
"""

import torch
import torch._inductor.config


@torch.compile
def f(x):  # here
    return x.tan().cos().sum()


f(torch.ones(5))
torch._dynamo.reset()
torch._inductor.config.epilogue_fusion = False
f(torch.ones(5))
