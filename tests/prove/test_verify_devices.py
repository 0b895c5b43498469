"""Changes that are proved on several devices at the same time.

As in ``tests/prove/test_bench_devices.py``, no GPU is needed.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

TWO_DEVICES = """\
import sys
from breakscan.__main__ import main
from breakscan.prove.verify import lanes, original
from breakscan.prove.devices import Placement

original.placements = lambda _: (Placement(0, "0,1"), Placement(1, "1,0"))
for one in (original, lanes):
    one.require_one_device = lambda about, placement: None
lanes.usable_cores = lambda: CORES
sys.exit(main(sys.argv[1:]))
"""
PROGRAM = """\
import os
from pathlib import Path

import torch

Path("seen").mkdir(exist_ok=True)
Path("seen", f"{os.getpid()} {os.environ['CUDA_VISIBLE_DEVICES']}").touch()


def f(x):
    y = x.cos()
    if y.sum() > 100:
        y = y + 1
    print("f")
    return y * 2


compiled = torch.compile(f, backend="eager")
for step in range(9):
    compiled(torch.ones(8))
"""


@pytest.mark.torch
@pytest.mark.slow
@pytest.mark.parametrize("cores", [8, 4])
def test_each_change_has_a_device(tmp_path: Path, valid: Callable[..., Any], cores: int) -> None:
    (tmp_path / "it.py").write_text(PROGRAM, encoding="utf-8")
    words = ["verify", "--devices", "0,1", "--each", "--format", "json", "it.py"]
    command = [sys.executable, "-c", TWO_DEVICES.replace("CORES", str(cores)), *words]
    found = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=500, check=False)
    told = valid(found.stdout, "verify")
    assert [proof["rewrite"] for proof in told["proofs"]] == ["where", "is-compiling-guard", None]
    assert all(proof["verdict"] in ("accepted", "no-faster") for proof in told["proofs"]), told["proofs"]
    seen = {path.name.partition(" ")[2] for path in (tmp_path / "seen").iterdir()}
    if cores == 8:
        assert told["devices"] == ["cuda:0", "cuda:1"]
        assert seen == {"0,1", "1,0"}
    else:
        assert told["devices"] == ["cuda:0"]
        assert told["notes"] == ["cuda:1 is left out: the cores are not enough, as there should be 4 for each device"]
        assert seen == {"0,1"}
