"""Calls that ran eager although the function is compiled: in the gate and in each format."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.torch

Run = Callable[..., Any]

PROGRAM = """import torch


@torch.compile(backend="eager")
def f(x):
    return x.sin()


@torch.compile(backend="eager")
def g(x):
    for _ in range(2):
        print("g")
    return x


f(torch.ones(3))
with torch.compiler.set_stance("force_eager"):
    for _ in range(4):
        f(torch.ones(3))
with torch.compiler.set_stance("eager_on_recompile"):
    f(torch.ones(3))
    f(torch.ones(3, 3))
for _ in range(3):
    g(torch.ones(3))
"""
FORCED = 'torch.compiler.set_stance("force_eager") was in force, under which nothing compiled runs'


def test_each_format_says_how_many_and_why(process: Run, folder: Path) -> None:
    (folder / "program.py").write_text(PROGRAM, encoding="utf-8")
    done = process("explain", "--save", "run", "--max-eager-calls", "6", "program.py")
    assert done.status == 1
    assert "5 of 8 calls ran eager" in done.err
    assert "--max-eager-calls 6 is not met: 7 eager calls at program.py:4:1, program.py:9:1" in done.err
    told = json.loads(process("report", "run", "--format", "json").out)
    assert told["summary"]["eager_calls"] == 7
    assert {(one["function"], one["stance"]): (one["calls"], one["of"]) for one in told["eager_calls"]} == {
        ("f", "force_eager"): (4, 6),
        ("f", "eager_on_recompile"): (1, 6),
        ("g", "default"): (2, 2),
    }
    assert process("report", "run", "--max-eager-calls", "7").status == 0
    shown = " ".join(process("report", "run").out.split())
    assert "program.py:4:1 ran eager 4× in f" in shown
    assert f"4 of 6 calls used no compiled code: {FORCED}. Called from program.py:19." in shown
    assert "1 of 6 calls used no compiled code: no compiled version fitted, and" in shown
    assert "in g" not in shown.split("Calls that ran eager")[1].split("What was compiled")[0]
    for name in ("markdown", "github", "sarif", "html"):
        words = process("report", "run", "--format", name).out
        assert "4 of 6 calls used no compiled code" in words, name
