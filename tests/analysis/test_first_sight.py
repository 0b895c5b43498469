"""Breaks that a file shows though nothing in it is annotated: what a name, a comparison or a class makes of a value."""

from __future__ import annotations

from pathlib import Path

import pytest
from asked import breaks, found

CASES = {
    "a target that is compared, and what is compared indexes": """
class Loss(nn.Module):
    def forward(self, logits, target):
        keep = target != -100
        kept = target[keep]  # !
        return logits[keep]  # !


holder = hold(Loss())


def f(x):
    y = x.sin()
    return holder.held(y, y.long()).cos()
""",
    "an inverted comparison": """
class Loss(nn.Module):
    def forward(self, logits, target):
        pad = target == 0
        return target[~pad]  # !


holder = hold(Loss())


def f(x):
    y = x.sin()
    return holder.held(y, y.long()).cos()
""",
    "a field of a NamedTuple without an annotation of a tensor": """
from typing import Any, NamedTuple


class Pair(NamedTuple):
    first: Any
    count: int


def f(x: torch.Tensor):
    y = x.sin()
    pair = Pair(y, 3)
    if pair.first.sum() > 0:  # !
        y = y + 1
    return y.cos()
""",
    "the __init__ of a module made in traced code": """
class Scale(nn.Module):
    def __init__(self, like):
        super().__init__()
        self.factor = int(like.sum())  # !

    def forward(self, x):
        return x * self.factor


def f(x: torch.Tensor):
    y = x.sin()
    return Scale(y)(y).cos()
""",
    "a hook on a module that nothing is known of": """
holder = hold(nn.Linear(4, 4))


def f(x: torch.Tensor):
    y = x.sin()
    holder.held.register_forward_hook(lambda *given: None)  # !
    return y.cos()
""",
    "backward of a loss that nothing is known of": """
holder = hold(nn.Linear(4, 4))


def f(x: torch.Tensor):
    y = holder.held(x.sin())
    total = holder.held.loss(y) if hasattr(holder.held, "loss") else holder.held(y)
    total.backward(torch.ones(4, 4))  # !
    return y.detach().cos()
""",
    "an optimizer that nothing is known of": """
holder = hold(torch.optim.SGD(nn.Linear(4, 4).parameters()))


def f(x: torch.Tensor):
    y = x.sin()
    optimizer = holder.held
    optimizer.zero_grad()  # !
    return y.cos()
""",
    "the step of an optimizer of any class": """
layer = nn.Linear(4, 4)
optimizer = torch.optim.RMSprop(layer.parameters())


def f(x: torch.Tensor):
    y = x.sin()
    optimizer.zero_grad()  # !
    return y.cos()
""",
    "a comparison that indexes nothing": """
def f(x, count=3):
    y = x.sin()
    more = count > 2
    rows = [y, y + 1]
    if more:
        y = rows[0] + count
    return y.cos()
""",
}


def marked(source: str) -> set[int]:
    return {number for number, line in enumerate(source.splitlines(), 1) if line.endswith("# !")}


@pytest.mark.parametrize("case", CASES)
def test_found(case: str, tmp_path: Path) -> None:
    assert {line for line, _ in found(CASES[case], tmp_path)} == marked(CASES[case])


@pytest.mark.torch
@pytest.mark.parametrize("case", CASES)
def test_the_compiler_agrees(case: str, tmp_path: Path) -> None:
    assert breaks(CASES[case], tmp_path) is bool(marked(CASES[case]))
