"""What stands against exports: in gates, in the comparison of two runs, and in each format."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from breakscan.model.torch_versions import minor_version

torch = pytest.importorskip("torch")
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


def test_a_log_of_torchs_trace_tells_of_exports(folder: Path, process: Run) -> None:
    program = """import torch


class Net(torch.nn.Module):
    def forward(self, x):
        y = x * 2
        if y.sum() > 0:
            y = y + 1
        return y


for size in (2, 3):
    torch.export.export(torch.nn.Linear(size, 1), (torch.ones(size),))
for strict in (False, True):
    try:
        torch.export.export(Net(), (torch.ones(3),), strict=strict)
    except Exception:
        pass
"""
    (folder / "program.py").write_text(program, encoding="utf-8")
    environment = {**os.environ, "TORCH_TRACE": str(folder / "trace")}
    subprocess.run([sys.executable, "program.py"], cwd=folder, env=environment, check=True, capture_output=True)
    told = json.loads(process("report", "trace", "--format", "json").out)
    (strict,) = (one for one in told["export_failures"] if one["rule"])
    assert (strict["rule"], strict["site"]["line"], strict["exports"][0]["strict"]) == ("BRK101", 7, True)
    if minor_version(torch.__version__) == "2.15":  # its trace has no stack of plain exports
        return
    assert "2 of 4 exports fail. Nothing was passed to torch.compile." in process("report", "trace").out
    (plain,) = (one for one in told["export_failures"] if not one["rule"])
    assert (plain["problem"], plain["site"]["line"], plain["exports"][0]["name"]) == ("not-told", 7, "Net()")
    assert [(one["count"], one["status"]) for one in told["exports"] if one["status"] == "done"] == [(2, "done")]
