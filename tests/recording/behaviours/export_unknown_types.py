"""Exports of what takes or returns an object that torch cannot take apart: one problem each, in whatever words.

expect: [(f["problem"], f["about"], f["count"], f["site"]["line"]) for f in export_failures] == [("output-type", "Plain", 2, line("call")), ("input-type", "Plain", 2, line("call"))] and "it returns a Plain" in export_failures[0]["reason"] and "register_dataclass(Plain)" in export_failures[1]["advice"]
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
