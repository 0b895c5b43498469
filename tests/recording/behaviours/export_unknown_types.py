"""Exports of what takes or returns an object that torch cannot take apart: one problem each, in whatever words.

expect: [(p["reason"], p["count"], p["site"]["line"]) for p in problems] == [("output-type", 2, line("call")), ("input-type", 2, line("call"))] and "it returns a Plain" in problems[0]["why"] and "register_dataclass(Plain)" in problems[1]["remedies"][0]["text"]
"""

import contextlib

import torch


class Plain:
    def __init__(self, x):
        self.x = x


class Returns(torch.nn.Module):
    def forward(self, x):
        return Plain(x + 1)


class Takes(torch.nn.Module):
    def forward(self, plain):
        return plain.x + 1


x = torch.ones(3)
for net, argument in ((Returns(), x), (Takes(), Plain(x))):
    for strict in (False, True):
        with contextlib.suppress(Exception):
            torch.export.export(net, (argument,), strict=strict)  # call
