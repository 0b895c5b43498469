"""Exports of sizes that the code or the example fixes, of an operator without a fake kernel, and of a wrong call.

expect: {p["reason"]: p["site"]["line"] for p in problems} == {"example-size": line("example"), "sizes": line("view"), "no-fake-kernel": line("operator"), "error": line("call")} and "TypeError" in problem("error")["why"] and "torch suggests batch = 4" in problem("sizes")["remedies"][0]["text"] and 'register_fake("behaviour::copy")' in problem("no-fake-kernel")["remedies"][0]["text"]
"""

import contextlib

import torch
from torch.export import Dim, draft_export, export


@torch.library.custom_op("behaviour::copy", mutates_args=())
def copy(x: torch.Tensor) -> torch.Tensor:
    return x.clone()


class Fixed(torch.nn.Module):
    def forward(self, x):
        return x.view(4)  # view


class Operator(torch.nn.Module):
    def forward(self, x):
        return copy(x) + 1  # operator


x = (torch.ones(4),)
for net, shapes in ((Fixed(), {"x": {0: Dim("batch")}}), (Operator(), None)):
    for strict in (False, True):
        with contextlib.suppress(Exception):
            export(net, x, dynamic_shapes=shapes, strict=strict)
with contextlib.suppress(Exception):
    export(torch.nn.Identity(), (torch.ones(1),), dynamic_shapes=({0: Dim("rows")},))  # example
draft_export(Operator(), x)
with contextlib.suppress(TypeError):
    export(Fixed(), (*x, *x))  # call
