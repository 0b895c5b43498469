"""Late results reach the functions that were interpreted before: places, attributes and results."""

from __future__ import annotations

from collections.abc import Callable

from breakscan.model.findings import CheckResult, Verdict

_ALL = {"regions": "all"}


def test_a_place_reaches_functions_that_call_one_another(check: Callable[..., CheckResult]) -> None:
    source = """
        def map_dict(fn, tree: dict):
            for key, value in tree.items():
                map_any(fn, value)

        def map_any(fn, tree):
            if isinstance(tree, dict):
                return map_dict(fn, tree)
            elif isinstance(tree, torch.Tensor):
                return fn(tree)
            print(tree)

        def use(x: torch.Tensor):
            return map_any(torch.relu, x)
        """
    found = check(source, **_ALL).findings
    assert [(f.rule, f.verdict, f.via) for f in found if f.rule == "BRK401"] == [("BRK401", Verdict.EAGER, "map_dict")]


WRAPPED = {
    "library.py": """
import functools


def report(owner, value):
    for _ in range(2):
        if value > 0:
            owner.count = 1


def reported(function):
    @functools.wraps(function)
    def wrapper(self, x):
        report(self, 1)
        y = function(self, x)
        report(self, y)
        return y

    return wrapper
""",
    "model.py": """
import torch
from torch import nn

from library import reported


class Model(nn.Module):
    @reported
    def forward(self, x: torch.Tensor):
        return x.sin().sum()
""",
}


def test_a_tensor_that_comes_late_reaches_what_a_decorator_of_another_file_calls(
    project: Callable[..., CheckResult],
) -> None:
    found = [f.site for f in project(WRAPPED, regions="auto").findings if f.rule == "BRK101"]
    assert [(site.path.rsplit("/", 1)[-1], site.line) for site in found] == [("library.py", 7)]
