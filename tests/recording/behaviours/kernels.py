"""Generated, library and fallback kernels.

expect: {"cpp", "extern", "fallback"} <= {k["kind"] for g in graphs for m in g["generated"] for k in m["kernels"]}
"""

import torch


@torch.compile
def f(x):
    q, _ = torch.linalg.qr(x @ x)  # here
    return q.sin() + 1


f(torch.ones(4, 4))
