"""One of each kind of behaviour.  Tests find a line by the mark in its comment."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
import torch._dynamo
from torch import Tensor

compiled: Callable[..., Any] = partial(torch.compile, backend="eager")
x = torch.ones(4)


def helper(x: Tensor) -> Tensor:
    print("from the helper", end="")  # inlined-print
    return x + 1


def calls_helper(x: Tensor) -> Tensor:
    return helper(x.sin()).cos()


compiled(calls_helper)(x)


def long_condition(x: Tensor) -> Tensor:
    y = x.sin()
    if (
        y.sum() > 0  # long-condition
        and y.max() < 10
    ):
        y = y * 2
    return y.cos()


compiled(long_condition)(x)


def by_flag(x: Tensor, flag: str) -> Tensor:
    return x + 1 if flag == "a" else x + 2  # by-flag


over = compiled(by_flag)
with torch._dynamo.config.patch(recompile_limit=3):
    for flag in "abcdef":
        over(x, flag)  # by-flag-call


def by_size(x: Tensor) -> Tensor:  # by-size
    y = x.sin()
    print("", end="")
    return y.cos()


sized = compiled(by_size)
for size in (4, 7, 8):
    sized(torch.ones(size))  # by-size-call


@torch._dynamo.disable(recursive=False)
def left_alone(x: Tensor) -> Tensor:
    return x * 2


def calls_left_alone(x: Tensor) -> Tensor:
    return left_alone(x.sin()).cos()


compiled(calls_left_alone)(x)


def in_thread(x: Tensor) -> Tensor:
    y = x.sin()
    print("", end="")  # in-thread
    return y.cos()


threads = [threading.Thread(target=compiled(in_thread), args=(x,)) for _ in range(2)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()


torch._dynamo.reset()


def after_reset(x: Tensor) -> Tensor:
    print("", end="")  # after-reset
    return x.sin()


compiled(after_reset)(x)


if child := os.fork():
    assert os.waitpid(child, 0)[1] == 0
else:

    def in_child(x: Tensor) -> Tensor:
        y = x.sin()
        print("", end="")  # in-child
        return y.cos()

    compiled(in_child)(x)
    os._exit(0)
