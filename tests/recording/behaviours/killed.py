"""A program that kills itself still has a report.

expect: site("here") and script["exit_status"] == -9
"""

import os
import signal

import torch


@torch.compile(backend="eager")
def f(x):
    print("", end="")  # here
    return x.sin()


f(torch.ones(4))
os.kill(os.getpid(), signal.SIGKILL)
