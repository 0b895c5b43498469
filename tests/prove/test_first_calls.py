"""What only a first call does: later ones find what it has set up."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from briefly import BRIEFLY

pytestmark = pytest.mark.torch

SET_UP = """\
import torch


class Scaled(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = None

    def forward(self, x):
        if self.scale is None:
            if x.sum() > 0:
                y = x * 2
            else:
                y = x * 3
            self.scale = y.abs().max()
        return x / self.scale


torch.manual_seed(0)
compiled = torch.compile(Scaled(), backend="aot_eager")
for step in range(4):
    compiled(torch.randn(8))
"""
OTHER_SCALE = """\
--- a/program.py
+++ b/program.py
@@ -14,3 +14,3 @@
                 y = x * 3
-            self.scale = y.abs().max()
+            self.scale = y.abs().max() + 0.01
         return x / self.scale
"""
LAZY = """\
import torch

net = torch.nn.LazyLinear(4)


def f(x):
    y = net(x)
    if y.sum() > 0:
        y = y * 2
    else:
        y = y * 3
    return y


compiled = torch.compile(f, backend="aot_eager")
for step in range(4):
    compiled(torch.randn(8, 3))
"""


def verified(folder: Path, text: str, *words: str, status: int = 0) -> str:
    (folder / "program.py").write_text(text, encoding="utf-8")
    command = [*BRIEFLY, "verify", "--format", "json", *words, "program.py"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=580)
    assert done.returncode == status, done.stdout + done.stderr
    return done.stdout


@pytest.mark.slow
def test_a_break_in_what_the_first_call_sets_up_is_found_and_proved(tmp_path: Path, valid: Callable[..., Any]) -> None:
    told = valid(verified(tmp_path, SET_UP), "verify")
    assert told["unreached"] == []
    (proof,) = told["proofs"]
    assert proof["label"] == "program.py:11 where"
    assert proof["verdict"] in ("accepted", "no-faster", "too-noisy"), proof["reasons"]
    assert (proof["breaks"]["before"], proof["breaks"]["after"]) == (1, 0)


def test_a_change_that_only_the_first_call_shows_is_rejected(tmp_path: Path, valid: Callable[..., Any]) -> None:
    (tmp_path / "scale.patch").write_text(OTHER_SCALE, encoding="utf-8")
    told = valid(verified(tmp_path, SET_UP, "--patch", "scale.patch", status=1), "verify")
    (proof,) = told["proofs"]
    assert proof["verdict"] == "rejected"
    assert any(reason.startswith("eager, output") for reason in proof["reasons"]), proof["reasons"]


@pytest.mark.slow
def test_parameters_without_a_shape_are_left_to_the_later_calls(tmp_path: Path, valid: Callable[..., Any]) -> None:
    told = valid(verified(tmp_path, LAZY), "verify")
    (proof,) = told["proofs"]
    assert proof["label"] == "program.py:8 where"
    assert proof["verdict"] in ("accepted", "no-faster", "too-noisy"), proof["reasons"]
