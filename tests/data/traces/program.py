"""What the logs beside this file are traces of.  ``make.py`` runs it."""

import torch
import torch._dynamo


def helper(x):
    print("from the helper")
    return x + 1


def splits(x):
    return helper(x.sin()).cos()


def in_loop(x):
    for _ in range(3):
        x = x.sin()
        if x.sum() > 100:
            x = x * 2
    return x


def by_flag(x, flag):
    y = x.sin()
    print("flag")
    return y + 1 if flag == "a" else y + 2


def strict(x):
    y = x.sin()
    return y.cos() if y.sum() > 0 else y


def refused(x):
    return x.sin()


def generator(x):
    yield x.sin()


def refuse(graph, inputs):
    raise ValueError("no backend today")


def main():
    x = torch.ones(4)
    torch.compile(splits, backend="eager")(x)
    torch.compile(in_loop, backend="eager")(x)
    list(torch.compile(generator, backend="eager")(x))
    flagged = torch.compile(by_flag, backend="eager")
    with torch._dynamo.config.patch(recompile_limit=3):
        for flag in "abcd":
            flagged(x, flag)
    for function, options in ((strict, {"backend": "eager", "fullgraph": True}), (refused, {"backend": refuse})):
        try:
            torch.compile(function, **options)(x)
        except Exception as error:
            print(function.__name__, type(error).__name__)
    with torch._dynamo.config.patch(suppress_errors=True):
        torch._dynamo.reset()
        torch.compile(refused, backend=refuse)(x)


main()
