"""A context manager that cannot be left and entered again.

expect: site("here")["verdict"] in ("eager", "splits") and eager("f")
"""

import threading

import torch

lock = threading.Lock()


@torch.compile(backend="eager")
def f(x):
    y = x.sin()
    with lock:  # here
        y = y + 1
    return y


f(torch.ones(4))
