"""Most calls run eager, because a stance of torch says so.

expect: not breaks and [(p["count"], p["reason"], p["called_from"][0]["line"]) for p in problems if p["kind"] == "eager-calls"] == [(9, "force_eager", line("here"))]
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
