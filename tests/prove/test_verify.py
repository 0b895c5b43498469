"""``breakscan verify`` from end to end: real programs, real processes, real Inductor."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from briefly import ran

from tests.conftest import Valid

pytestmark = pytest.mark.torch

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


@pytest.mark.slow
def test_a_close_gain_is_timed_in_further_processes(tmp_path: Path) -> None:
    """Here every gain is close."""
    (tmp_path / "train.py").write_text(TRAIN, encoding="utf-8")
    closely = (
        "import sys; from breakscan.__main__ import main; from breakscan.prove import faster; "
        "faster.CLOSE, faster.LEAST = 100.0, 0.01; faster.apart = lambda _: 0.01; sys.exit(main(sys.argv[1:]))"
    )
    command = [sys.executable, "-c", closely, "verify", "train.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=580)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stderr.count("train.py:12 where: timing it in further processes") == 3
    assert "faster [" in done.stdout


@pytest.mark.slow
def test_rewrites_of_a_training_program_with_dropout_on_inductor(tmp_path: Path, valid: Valid) -> None:
    (tmp_path / "train.py").write_text(TRAIN, encoding="utf-8")
    told = valid(ran(tmp_path, "verify", "--format", "json", "train.py", brief=True).stdout, "verify")
    (proof,) = told["proofs"]
    assert (proof["label"], proof["rule"], proof["rewrite"]) == ("train.py:12 where", "BRK101", "where")
    assert proof["verdict"] in ("accepted", "no-faster", "too-noisy"), proof["reasons"]
    assert proof["outputs_equal"] is True
    assert proof["breaks"] == {"before": 1, "after": 0}
    assert proof["graphs"] == {"before": 2, "after": 1}
    assert proof["kernels"]["before"]["cpp"] > proof["kernels"]["after"]["cpp"] > 0
    assert proof["compile_seconds"]["before"] > 0.1
    assert proof["first_call_seconds"]["after"] > 0.1
    assert proof["step_seconds"]["before"] > 0
    assert told["calls"] == [{"callable": "Net", "captured": 3, "backward": True}]
    # Nothing of the program remains, and its own output is not part of the report.
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


@pytest.mark.slow
def test_a_patch_that_is_faster_is_accepted_and_written(tmp_path: Path) -> None:
    script = tmp_path / "slow.py"
    script.write_text(SLOW, encoding="utf-8")
    (tmp_path / "it.diff").write_text(
        "--- a/slow.py\n+++ b/slow.py\n@@ -6,3 +6,2 @@\n     y = x + 1\n-    time.sleep(0.002)\n     if y.sum() > 0:\n",
        encoding="utf-8",
    )
    told = ran(tmp_path, "verify", "--patch", "it.diff", "--apply", "slow.py").stdout
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
    told = ran(tmp_path, "verify", "--patch", "it.diff", "--apply", "slow.py", status=1).stdout
    assert "rejected: eager, output differs by 0.2 at [0] (4.2 for 4; allowed 1e-05)" in told
    assert "Your files are unchanged: no change was accepted." in told
    assert script.read_text(encoding="utf-8") == SLOW


HIDDEN = """\
import time

import torch


def costly(graph, inputs):
    def run(*values):
        time.sleep(0.002)
        return graph(*values)

    return run


class Inner(torch.nn.Module):
    def forward(self, x):
        y = x + 1
        if y.sum() > 0:
            y = y * 2
        else:
            y = y * 3
        return y


class Outer(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.inners = torch.nn.ModuleList(Inner() for _ in range(2))

    def forward(self, x):
        for inner in self.inners:
            x = inner(x)
        if x.mean() > 0:
            x = x + 1
        else:
            x = x - 1
        if x.std() > 0:
            x = x + 2
        else:
            x = x - 2
        if x.amax() > 0:
            x = x + 3
        else:
            x = x - 3
        return x


model = torch.compile(Outer(), backend=costly)
for step in range(3):
    model(torch.ones(4, 4))
"""


@pytest.mark.slow
def test_breaks_that_another_one_hides_are_proved_and_written_together(tmp_path: Path, valid: Valid) -> None:
    script = tmp_path / "hidden.py"
    script.write_text(HIDDEN, encoding="utf-8")
    told = valid(ran(tmp_path, "verify", "--apply-unseen", "--format", "json", "hidden.py").stdout, "verify")
    inner, mean, std, amax, whole = told["proofs"]
    assert inner["verdict"] in ("no-faster", "too-noisy"), inner["reasons"]
    assert inner["breaks"] == {"before": 2, "after": 3}
    assert inner["eager_frames"]["after"] < inner["eager_frames"]["before"]
    assert inner["revealed"] == ["hidden.py:32", "hidden.py:36", "hidden.py:40"]
    assert [one["breaks_there"] for one in told["proofs"]] == [True, False, False, False, True]
    assert {one["verdict"] for one in (mean, std, amax)} <= {"no-faster", "too-noisy"}
    assert (whole["verdict"], whole["breaks"]) == ("accepted", {"before": 2, "after": 0})
    assert told["applied"] == ["hidden.py"]
    assert script.read_text(encoding="utf-8").count("torch.where") == 4


@pytest.mark.slow
def test_what_was_proved_before_an_interrupt_is_told(tmp_path: Path, valid: Valid) -> None:
    script = tmp_path / "hidden.py"
    script.write_text(HIDDEN, encoding="utf-8")
    command = [sys.executable, "-m", "breakscan", "verify", "--apply", "--format", "json", "hidden.py"]
    with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as running:
        assert running.stdout is not None
        assert running.stderr is not None
        for line in running.stderr:
            if "hidden.py:32 where: running" in line:
                # As a scheduler ends a job; for Ctrl-C see test_bench.py.
                running.send_signal(signal.SIGTERM)
                break
        told = valid(running.stdout.read(), "verify")
    assert running.returncode == 130
    assert told["interrupted"] is True
    assert [one["label"] for one in told["proofs"]] == ["hidden.py:17 where", "all"]
    assert told["not_applied"] == "it was interrupted before all was proved"
    assert script.read_text(encoding="utf-8") == HIDDEN


@pytest.mark.slow
def test_a_setting_can_be_verified(tmp_path: Path, valid: Valid) -> None:
    text = "import torch\n\n\ndef f(x):\n    return x * x.sum().item()\n\n\ng = torch.compile(f, backend='aot_eager')\n"
    (tmp_path / "item.py").write_text(text + "for step in range(5):\n    g(torch.ones(8))\n", encoding="utf-8")
    words = ["--config", "capture_scalar_outputs=True", "--format", "json", "item.py"]
    told = valid(ran(tmp_path, "verify", *words, brief=True).stdout, "verify")
    (proof,) = told["proofs"]
    assert proof["label"] == "dynamo.capture_scalar_outputs=True"
    assert proof["outputs_equal"] is True
    assert proof["breaks"] == {"before": 1, "after": 0}


@pytest.mark.slow
@pytest.mark.parametrize(("change", "is_rejected"), [("net.weight.data.mul_(2)", True), ("pass", False)])
def test_weights_that_change_in_later_calls_are_not_held_constant(
    change: str, is_rejected: bool, tmp_path: Path, valid: Valid
) -> None:
    text = f"""\
import torch
net = torch.nn.Linear(4, 4)
g = torch.compile(net, backend="aot_eager")
for step in range(7):
    with torch.no_grad():
        g(torch.ones(2, 4))
        if step == 4:
            {change}
"""
    (tmp_path / "net.py").write_text(text, encoding="utf-8")
    words = ["--config", "inductor.freezing=True", "--format", "json", "net.py"]
    done = ran(tmp_path, "verify", *words, status=int(is_rejected), brief=True)
    (proof,) = valid(done.stdout, "verify")["proofs"]
    assert (proof["verdict"] == "rejected") is is_rejected


@pytest.mark.parametrize(
    ("text", "words", "said"),
    [
        ("print('hello')\n", [], "the program compiles nothing"),
        pytest.param(
            "import torch\n\n@torch.compile\ndef f(x):\n    return x\n",
            [],
            "the program called nothing that it had compiled (f was never called)",
            marks=pytest.mark.slow,
        ),
        (
            "import torch\n\n@torch.compile\ndef f(x):\n    return x @ x\n\nf(torch.ones(2, 3))\n",
            [],
            "the program fails without torch.compile, too, in f: RuntimeError: ",
        ),
        ("x = 1\n", ["--config", "nonsense"], "is not of the form key=value"),
        ("x = 1\n", ["--rewrite", "wher"], "there is no rewrite 'wher'"),
        ("x = 1\n", ["--config", "a=1", "--apply"], "--apply cannot write a setting"),
    ],
)
def test_what_cannot_be_verified_is_said(tmp_path: Path, text: str, words: list[str], said: str) -> None:
    (tmp_path / "it.py").write_text(text, encoding="utf-8")
    done = ran(tmp_path, "verify", *words, "it.py", status=2)
    assert said in done.stderr
    assert "Traceback" not in done.stderr


def test_numpy_is_not_needed(tmp_path: Path) -> None:
    (tmp_path / "none").mkdir()
    (tmp_path / "none" / "numpy.py").write_text("raise ModuleNotFoundError", encoding="utf-8")
    program = "import torch\n\n\n@torch.compile(backend='eager')\ndef f(x):\n    return x.sin() * torch.rand(3)\n\n\n"
    (tmp_path / "train.py").write_text(f"{program}for _ in range(4):\n    f(torch.ones(3))\n", encoding="utf-8")
    command = [sys.executable, "-m", "breakscan", "verify", "--config", "dynamo.verbose=False"]
    command += ["--format", "json", "--output", "proofs.json", "train.py"]
    environment = {**os.environ, "PYTHONPATH": str(tmp_path / "none")}
    subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, timeout=300)
    (proof,) = json.loads((tmp_path / "proofs.json").read_text(encoding="utf-8"))["proofs"]
    assert proof["outputs_equal"]
