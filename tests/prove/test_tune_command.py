"""``breakscan tune`` from end to end: a real program, real processes, real Inductor."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import Valid

pytestmark = [pytest.mark.torch, pytest.mark.process, pytest.mark.slow]

PROGRAM = """import torch


class Net(torch.nn.Module):
    def forward(self, x):
        largest = x.abs().max().item()
        return torch.cos(x / largest)


torch.manual_seed(0)
net = torch.compile(Net())
total = 0.0
for step in range(100):
    total += float(net(torch.randn(256, 1024)).sum())
print(total)
"""


def tune(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Runs the command in a folder with the program."""
    command = [sys.executable, "-m", "breakscan", "tune", *words]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=900)


def test_a_break_is_removed_by_a_patch(tmp_path: Path, valid: Valid) -> None:
    (tmp_path / "net.py").write_text(PROGRAM, encoding="utf-8")
    done = tune(tmp_path, "--time", "240", "--format", "json", "net.py")
    assert done.returncode == 0, done.stderr
    told = valid(done.stdout, "tune")
    assert told["step"] == "net.py:13"
    assert told["before"]["breaks"] == 1
    best = told["best"]
    assert best, told
    assert best["breaks"] == {"before": 1, "after": 0}
    assert best["candidates"]
    assert "run" in best["compared"]
    assert told["applied"] == []
    assert (tmp_path / "net.py").read_text(encoding="utf-8") == PROGRAM
    subprocess.run(["git", "apply", "-"], input=best["patch"], cwd=tmp_path, text=True, check=True)
    assert (tmp_path / "net.py").read_text(encoding="utf-8") != PROGRAM
