"""Two exports, with Dynamo and without, fail at one test on data: one problem.  What a draft meets, its report has.

expect: not (breaks or frames) and [(p["reason"], p["site"]["line"], p["count"], p["rule"]) for p in problems] == [("data-dependent-test", line("size"), 2, None), ("data-dependent-test", line("value"), 2, "BRK101")] and "u0 > 3" in problems[0]["why"] and [e["status"] for e in exports] == ["failed", "failed", "failed", "failed", "done"]
"""

import contextlib

import torch


class OnSize(torch.nn.Module):
    def forward(self, x, n):
        y = torch.zeros(n.item())
        if y.shape[0] > 3:  # size
            return x + y.sum()
        return x


def on_value(x):
    if x.sum() > 0:  # value
        return x + 1
    return x - 1


class OnValue(torch.nn.Module):
    def forward(self, x, n):
        return on_value(x * n)  # call


inputs = (torch.ones(4), torch.tensor(4))
for net in (OnSize(), OnValue()):
    for strict in (False, True):
        with contextlib.suppress(RuntimeError):
            torch.export.export(net, inputs, strict=strict)
torch.export.draft_export(OnSize(), inputs)
