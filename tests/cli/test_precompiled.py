"""Functions that a run loads compiled, out of the caches of an earlier one."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytestmark = [pytest.mark.torch, pytest.mark.slow]

Run = Callable[..., Any]

PROGRAM = """import sys
import torch

torch._dynamo.config.caching_precompile = True
if sys.argv[1] == "load":
    with open("artifacts", "rb") as file:
        torch.compiler.load_cache_artifacts(file.read())


@torch.compile
def f(x):
    return x.sin() + 1


print(f(torch.ones(4)).sum())
if sys.argv[1] == "save":
    with open("artifacts", "wb") as file:
        file.write(torch.compiler.save_cache_artifacts()[0])
"""


def test_what_is_loaded_compiled_was_called(process: Run, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "program.py").write_text(PROGRAM, encoding="utf-8")
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(folder / "first"))
    saved = process("explain", "program.py", "save")
    assert "1 graph of 2 operations" in saved.err
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(folder / "second"))
    loaded = process("explain", "--save", "run", "program.py", "load")
    assert loaded.out == saved.out
    words = " ".join(loaded.err.split())
    assert "Nothing had to be compiled: 1 function was loaded compiled" in words
    assert "Loaded compiled: f (program.py:10)" in words
    told = json.loads(process("report", "run", "--format", "json").out)
    assert [one["function"] for one in told["precompiled"]] == ["f"]
    assert [target["attempted"] for target in told["targets"]] == [True]
