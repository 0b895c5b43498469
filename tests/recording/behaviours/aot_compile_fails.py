"""Two functions are compiled ahead of time; one cannot be.

expect: len(graphs) == 1 and [(e["way"], e["name"], e["status"]) for e in exports] == [("aot_compile", "good", "done"), ("aot_compile", "bad", "failed")] and [(p["rule"], p["site"]["line"], p["what"]) for p in problems] == [("BRK101", line("here"), "fails to compile ahead of time")]
"""

import contextlib

import torch


def good(x):
    return x.sin() + 1


def bad(x):
    if x.sum() > 0:  # here
        return x
    return x + 1


torch._dynamo.config.enable_aot_compile = True
x = torch.ones(4)
torch.compile(good, fullgraph=True).aot_compile(((x,), {}))(x)
with contextlib.suppress(torch._dynamo.exc.Unsupported):
    torch.compile(bad, fullgraph=True).aot_compile(((x,), {}))
