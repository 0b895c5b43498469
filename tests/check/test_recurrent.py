"""Recurrent modules: Dynamo gives a function up where it first reads one, wherever that is set."""

from __future__ import annotations

from pathlib import Path

import pytest
from asked import breaks, found

MODEL = """
{imports}
class Own(nn.GRU):
    pass


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.held = {made}

    def forward(self, x):
        y = x.sin()
        {use}
        return y.cos()


model = Model()


def f(x):
    return model(x)
"""

CALL = "y, _ = self.held(y)"
MADE_AND_USED = [
    ("", "nn.LSTM(4, 4)", CALL),
    ("from torch.nn import LSTM as Layer", "Layer(4, 4)", CALL),
    ("from torch.nn.modules.rnn import GRU", "GRU(4, 4)", CALL),
    ("import torch.nn.modules as modules", "modules.RNN(4, 4)", CALL),
    ("", "Own(4, 4)", CALL),
    ("", "nn.LSTM(4, 4)", "y = y * self.held.hidden_size"),
    ("", "nn.GRU(4, 4)", "assert self.held is not None"),
    ("", "nn.GRU(4, 4) if torch.get_num_threads() else nn.LSTM(4, 4)", CALL),
    ("", "nn.ModuleList([nn.GRU(4, 4)])", "y, _ = self.held[0](y)"),
]
NOT_READ = [
    ("", "nn.GRU(4, 4)", "y = y + 1"),
    ("", "nn.LSTMCell(4, 4)", "y, _ = self.held(y)"),
]

IN_A_SUBCLASS = """
class Base(nn.Module):
    def forward(self, x):
        y = x.sin()
        y, _ = self.held(y)
        return y.cos()


class Model(Base):
    def __init__(self):
        super().__init__()
        self.held = nn.GRU(4, 4)


model = Model()


def f(x):
    return model(x)
"""


def program(imports: str, made: str, use: str) -> str:
    return MODEL.format(imports=imports, made=made, use=use)


@pytest.mark.parametrize("case", MADE_AND_USED)
def test_reading_one_is_found(case: tuple[str, str, str], tmp_path: Path) -> None:
    source = program(*case)
    line = source[: source.index(case[2])].count("\n") + 1
    assert found(source, tmp_path) == {(line, "BRK609")}


@pytest.mark.parametrize("case", NOT_READ)
def test_what_reads_none_is_not_found(case: tuple[str, str, str], tmp_path: Path) -> None:
    assert not found(program(*case), tmp_path)


def test_one_set_in_a_subclass_is_found(tmp_path: Path) -> None:
    assert found(IN_A_SUBCLASS, tmp_path) == {(5, "BRK609")}


@pytest.mark.torch
@pytest.mark.parametrize("case", [*MADE_AND_USED, *NOT_READ])
def test_the_compiler_agrees(case: tuple[str, str, str], tmp_path: Path) -> None:
    assert breaks(program(*case), tmp_path) is (case in MADE_AND_USED)


@pytest.mark.torch
def test_the_compiler_agrees_about_a_subclass(tmp_path: Path) -> None:
    assert breaks(IN_A_SUBCLASS, tmp_path)
