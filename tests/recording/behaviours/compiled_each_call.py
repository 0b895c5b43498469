"""torch.compile is called in each call of a step, which keeps what it computes by the sizes that come.

expect: [(p["kind"], p["site"]["line"], [r["name"] for r in p["remedies"]]) for p in problems if p["kind"] != "recompiles"] == [("compiled-anew", line("here"), ["compile-once"])] and [r["name"] for p in problems if p["kind"] == "recompiles" for r in p["remedies"]] == ["no-memo"]
"""

import torch

kept = {}


def masked(x):
    size = x.shape[0]
    if size not in kept:
        kept[size] = torch.ones(size)
    return x * kept[size]


for size in (4, 5, 6, 7, 8, 9, 10):
    torch.compile(masked, backend="eager")(torch.ones(size))  # here
