"""Exports of sizes that the code or the example fixes, of an operator without a fake kernel, and of a wrong call.

expect: {f["problem"]: (f["site"]["line"], f["about"].split("[")[0], f["fixes"]) for f in export_failures} == {"example-size": (line("example"), "rows", []), "sizes": (line("view"), "batch", ["batch = 4"]), "no-fake-kernel": (line("operator"), "behaviour::copy", []), "error": (line("call"), "", [])} and "TypeError" in next(f["reason"] for f in export_failures if f["problem"] == "error") and 'register_fake("behaviour::copy")' in next(f["advice"] for f in export_failures if f["problem"] == "no-fake-kernel")
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
