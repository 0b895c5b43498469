"""An if on a tensor splits the graph.

expect: site("here")["verdict"] == "splits" and site("here")["rule"] == "BRK101" and len(graphs) == 2
"""

import torch


@torch.compile(backend="eager")
def f(x):
    y = x.sin()
    if y.sum() > 0:  # here
        y = y + 1
    return y.cos()


f(torch.ones(4))
