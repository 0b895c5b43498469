"""A project with models for surveys, as a user would write them."""

from pathlib import Path

import pytest

ZOO = """
import os
import time
import torch
from torch import nn


class Branchy(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.linear(x)
        if y.sum() > 0:
            y = y + 1
        return y


def names():
    return ["small", "large"]


def build(name):
    return Branchy(), (torch.randn(2 if name == "small" else 8, 4),)


def branchy():
    return build("small")


def whole():
    return nn.Linear(4, 4), {"input": torch.randn(2, 4)}


def hangs():
    time.sleep(1000)


def crashes():
    os.abort()


def lacks():
    import no_such_package


def fails():
    return nn.Linear(3, 3), (torch.randn(2, 4),)
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "zoo.py").write_text(ZOO, encoding="utf-8")
    return tmp_path
