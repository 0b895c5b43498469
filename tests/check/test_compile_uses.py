"""Findings about the use of compiled code that another file defines."""

from collections.abc import Callable

from breakscan.model.findings import CheckResult

NET = """
    import torch

    class Net(torch.nn.Module):
        @classmethod
        def small(cls):
            return cls()

        def forward(self, x):
            return x

        def generate(self, x):
            return self(x)
"""
MAIN = """
    import torch
    from net import Net

    model = torch.compile(Net())
    model.generate(torch.ones(4))
    small = torch.compile(Net.small())
    small.generate(torch.ones(4))
"""


def test_a_class_of_another_file(project: Callable[..., CheckResult]) -> None:
    found = project({"net.py": NET, "main.py": MAIN}, only=["main.py"], regions="auto").findings
    assert [(f.site.line, f.rule) for f in found] == [(6, "BRK807"), (8, "BRK807")]
