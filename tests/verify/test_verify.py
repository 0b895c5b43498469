"""``breakscan verify`` from end to end: real programs, real processes, real Inductor."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from referencing import Registry, Resource

import breakscan

pytestmark = pytest.mark.torch

SCHEMAS = Path(breakscan.__file__).parent / "schemas"

TRAIN = """\
import torch


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = torch.nn.Linear(16, 16)
        self.drop = torch.nn.Dropout(0.5)

    def forward(self, x):
        y = torch.relu(self.fc(x))
        if y.sum() > 0:
            y = y * 2
        else:
            y = y * 3
        return self.drop(y)

    def unused(self, x):
        if x.sum() > 0:
            return x
        return -x


net = Net()
compiled = torch.compile(net)
optimizer = torch.optim.SGD(net.parameters(), 0.1)
for step in range(50):
    print("step", step)
    compiled(torch.randn(8, 16)).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
"""
WHERE = "        y = torch.where(y.sum() > 0, y * 2, y * 3)\n"


def verify(folder: Path, *words: str, status: int = 0) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "breakscan", "verify", *words]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=580)
    assert done.returncode == status, done.stdout + done.stderr
    return done


def valid(text: str) -> Any:
    files = ((path.name, json.loads(path.read_text(encoding="utf-8"))) for path in SCHEMAS.glob("*.json"))
    registry: Any = Registry().with_resources((name, Resource.from_contents(schema)) for name, schema in files)
    schema = json.loads((SCHEMAS / "verify.schema.json").read_text(encoding="utf-8"))
    told = json.loads(text)
    jsonschema.Draft202012Validator(schema, registry=registry).validate(told)
    return told


def test_rewrites_of_a_training_program_with_dropout_on_inductor(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(TRAIN, encoding="utf-8")
    told = valid(verify(tmp_path, "--format", "json", "train.py").stdout)
    (proof,) = told["proofs"]
    assert (proof["label"], proof["rule"], proof["rewrite"]) == ("train.py:12 where", "BRK101", "where")
    assert proof["verdict"] in ("accepted", "no-faster"), proof["reasons"]
    assert proof["outputs_equal"] is True
    assert proof["breaks"] == {"before": 1, "after": 0}
    assert proof["graphs"] == {"before": 2, "after": 1}
    assert proof["kernels"]["before"]["cpp"] > proof["kernels"]["after"]["cpp"] > 0
    assert proof["compile_seconds"]["before"] > 0.1
    assert proof["first_call_seconds"]["after"] > 0.1
    assert proof["step_seconds"]["before"] > 0
    assert proof["memory_bytes"]["after"] > 1e8
    assert told["calls"] == [{"callable": "Net", "captured": 3}]
    # Nothing of the program is left behind, and its own output is not part of the report.
    assert (tmp_path / "train.py").read_text(encoding="utf-8") == TRAIN
    assert [path.name for path in tmp_path.iterdir()] == ["train.py"]


SLOW = """\
import time
import torch


def f(x):
    y = x + 1
    time.sleep(0.002)
    if y.sum() > 0:
        y = y * 2
    return y


g = torch.compile(f, backend="aot_eager")
for step in range(5):
    g(torch.ones(8))
"""


def test_a_patch_that_is_faster_is_accepted_and_written(tmp_path: Path) -> None:
    script = tmp_path / "slow.py"
    script.write_text(SLOW, encoding="utf-8")
    (tmp_path / "it.diff").write_text(
        "--- a/slow.py\n+++ b/slow.py\n@@ -6,3 +6,2 @@\n     y = x + 1\n-    time.sleep(0.002)\n     if y.sum() > 0:\n",
        encoding="utf-8",
    )
    told = verify(tmp_path, "--patch", "it.diff", "--apply", "slow.py").stdout
    assert "1 change: 1 accepted." in told
    assert "× faster [" in told
    assert "Written: slow.py." in told
    assert script.read_text(encoding="utf-8") == SLOW.replace("    time.sleep(0.002)\n", "")


def test_what_is_rejected_is_not_written(tmp_path: Path) -> None:
    script = tmp_path / "slow.py"
    script.write_text(SLOW, encoding="utf-8")
    (tmp_path / "it.diff").write_text(
        "--- a/slow.py\n+++ b/slow.py\n@@ -9,2 +9,2 @@\n-        y = y * 2\n+        y = y * 2.1\n     return y\n",
        encoding="utf-8",
    )
    told = verify(tmp_path, "--patch", "it.diff", "--apply", "slow.py", status=1).stdout
    assert "rejected: eager, output differs by 0.2 at [0] (4.2 for 4; allowed 1e-05)" in told
    assert "Your files are unchanged: nothing was proved." in told
    assert script.read_text(encoding="utf-8") == SLOW


def test_a_setting_can_be_verified(tmp_path: Path) -> None:
    text = "import torch\n\n\ndef f(x):\n    return x * x.sum().item()\n\n\ng = torch.compile(f, backend='aot_eager')\n"
    (tmp_path / "item.py").write_text(text + "for step in range(5):\n    g(torch.ones(8))\n", encoding="utf-8")
    told = valid(
        verify(tmp_path, "--config", "capture_scalar_outputs=True", "--format", "json", "item.py").stdout,
    )
    (proof,) = told["proofs"]
    assert proof["label"] == "dynamo.capture_scalar_outputs=True"
    assert proof["outputs_equal"] is True
    assert proof["breaks"] == {"before": 1, "after": 0}


@pytest.mark.parametrize(
    ("text", "words", "said"),
    [
        ("print('hello')\n", [], "the program compiles nothing"),
        ("import torch\n1 / 0\n", [], "failed before it called anything compiled: ZeroDivisionError: division by zero"),
        (
            "import torch\n\n@torch.compile\ndef f(x):\n    return x\n",
            [],
            "the program called nothing that it had compiled (f was never called)",
        ),
        ("x = 1\n", ["--config", "nonsense"], "is not of the form key=value"),
        ("x = 1\n", ["--rewrite", "wher"], "there is no rewrite 'wher'"),
        ("x = 1\n", ["--config", "a=1", "--apply"], "--apply cannot write a setting"),
    ],
)
def test_what_cannot_be_verified_is_said(tmp_path: Path, text: str, words: list[str], said: str) -> None:
    (tmp_path / "it.py").write_text(text, encoding="utf-8")
    done = verify(tmp_path, *words, "it.py", status=2)
    assert said in done.stderr
    assert "Traceback" not in done.stderr
