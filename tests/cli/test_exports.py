"""What stands against exports: in gates, in the comparison of two runs, and in each format."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.torch

Run = Callable[..., Any]

PROGRAM = """import torch


class Net(torch.nn.Module):
    def forward(self, x):
        if x.sum() > 0:
            return x + 1
        return x - 1


try:
    torch.export.export(Net(), (torch.ones(3),))
except RuntimeError:
    print("not exported")
"""
MENDED = "        return torch.where(x.sum() > 0, x + 1, x - 1)"
WHY = "it tests what depends on data, which an export does not know (torch: Eq(u0, 1))"


def test_each_format_says_what_stands_against_an_export(process: Run, folder: Path) -> None:
    program = folder / "program.py"
    program.write_text(PROGRAM, encoding="utf-8")
    done = process("explain", "--save", "run", "--max-breaks", "0", "program.py")
    assert done.status == 1
    assert done.out == "not exported\n"
    assert "1 of 1 export fails. Nothing was passed to torch.compile." in done.err
    assert "--max-breaks 0 is not met: 1 break site at program.py:6:12" in done.err
    shown = " ".join(process("report", "run").out.split())
    assert "program.py:6:12 fails to export in Net.forward" in shown
    assert f"Why: {WHY}. It ends torch.export.export(Net). Called from program.py:12." in shown
    for name in ("markdown", "github", "sarif", "html"):
        words = process("report", "run", "--format", name).out
        assert "it tests what depends on data" in words, name
    told = json.loads(process("report", "run", "--format", "json").out)
    assert (told["summary"]["exports"], told["summary"]["export_failures"]) == (1, 1)
    assert "Could not guard on data-dependent expression" in told["export_failures"][0]["text"]

    lines = PROGRAM.splitlines()
    program.write_text("\n".join([*lines[:5], MENDED, *lines[8:], ""]), encoding="utf-8")
    done = process("explain", "--save", "mended", "--max-breaks", "0", "program.py")
    assert (done.status, done.out) == (0, "")
    assert "1 export succeeds." in done.err
    assert "Exports: Net by torch.export.export, 5 operations" in done.err
    worse = process("diff", "mended", "run")
    assert worse.status == 1
    assert "New graph breaks" in worse.out
    assert "program.py:6  raises  data-dependent-test  in Net.forward" in worse.out
    assert "Gone graph breaks" in process("diff", "run", "mended").out
