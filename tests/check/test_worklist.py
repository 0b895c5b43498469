"""Late results reach the functions that were interpreted before: places, attributes and results."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from breakscan.check.pipeline.check import check_paths
from breakscan.model.findings import CheckResult, Verdict
from breakscan.rulebook.config import Settings

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


def test_a_tensor_that_comes_late_reaches_what_a_decorator_of_another_file_calls(tmp_path: Path) -> None:
    for name, text in WRAPPED.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    settings = Settings(root=tmp_path, target_torch="2.13")
    found = check_paths([tmp_path / name for name in WRAPPED], settings).findings
    assert [(f.site.path.rsplit("/", 1)[-1], f.site.line, f.rule) for f in found if f.rule == "BRK101"] == [
        ("library.py", 7, "BRK101")
    ]
