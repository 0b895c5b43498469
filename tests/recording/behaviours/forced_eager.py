"""Most calls run eager, because a stance of torch says so.

expect: not breaks and [(c["calls"], c["of"], c["stance"], c["caller"]["line"]) for c in eager_calls] == [(9, 10, "force_eager", line("here"))]
"""

import torch


@torch.compile(backend="eager")
def f(x):
    return x.sin() + 1


f(torch.ones(4))
with torch.compiler.set_stance("force_eager"):
    for _ in range(9):
        f(torch.ones(4))  # here
f(torch.ones(4))
