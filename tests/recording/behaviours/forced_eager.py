"""Most calls run eager: under a stance of torch that says so, and from a dispatch mode on.

expect: not breaks and [(p["count"], p["reason"], p["called_from"][0]["line"]) for p in problems if p["kind"] == "eager-calls"] == [(9, "force_eager", line("here")), (3, "dispatch-mode:Counter", line("mode"))]
"""

import torch
from torch.utils._python_dispatch import TorchDispatchMode


class Counter(TorchDispatchMode):
    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        return function(*args, **(kwargs or {}))


@torch.compile(backend="eager")
def f(x):
    return x.sin() + 1


f(torch.ones(4))
with torch.compiler.set_stance("force_eager"):
    for _ in range(9):
        f(torch.ones(4))  # here
with Counter():
    for _ in range(2):
        f(torch.ones(4))  # mode
f(torch.ones(4))
