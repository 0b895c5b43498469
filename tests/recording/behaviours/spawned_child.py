"""A spawned process compiles too.

expect: script["processes"] == 1 and site("here")
"""

import multiprocessing

import torch


def work():
    @torch.compile(backend="eager")
    def f(x):
        print("", end="")  # here
        return x.sin()

    f(torch.ones(4))


if __name__ == "__main__":
    child = multiprocessing.get_context("spawn").Process(target=work)
    child.start()
    child.join()
