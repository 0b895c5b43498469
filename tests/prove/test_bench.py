"""``breakscan bench`` from end to end: real programs, real processes, real signals."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest
from briefly import ran

from tests.conftest import Valid

pytestmark = pytest.mark.torch

PROGRAM = """\
import torch
from torch._dynamo import register_backend

@register_backend
def broken(graph, inputs):
    raise ValueError("it is broken\\nand more")

@register_backend
def wrong(graph, inputs):
    return lambda *args: [one + 0.1 for one in graph(*args)]

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = torch.nn.Linear(8, 8)

    def forward(self, x):
        y = self.fc(x)
        return y * y.sum().item()

compiled = torch.compile(Net(), backend="aot_eager")
for step in range(50):
    print("step", step)
    compiled(torch.ones(4, 8)).sum().backward()
"""


@pytest.mark.slow
def test_each_way_of_a_training_step_is_measured_or_says_why_not(tmp_path: Path, valid: Valid) -> None:
    (tmp_path / "train.py").write_text(PROGRAM, encoding="utf-8")
    words = ("--backends", "aot_eager,broken,wrong", "--format", "json", "train.py")
    told = valid(ran(tmp_path, "bench", *words, brief=True).stdout, "bench")
    ways = {way["way"]: way for way in told["ways"]}
    assert list(ways) == ["program's own", *(f'backend="{name}"' for name in ("aot_eager", "broken", "wrong"))]
    own = ways["program's own"]
    assert (own["standing"], own["breaks"], own["graphs"]) == ("measured", 1, 2)
    assert own["compile_seconds"]["aot_autograd"] > 0
    assert own["compiling_seconds"] > 0
    # Compiled, but by nothing that makes it faster.
    assert own["ratio"]["high"] < 1
    assert own["pays_after_calls"] is None
    # It is not the one to choose, and further processes would not make it faster than eager.
    assert own["processes"] == 1
    assert ways['backend="aot_eager"']["same_as"] == "program's own"
    broken, wrong = ways['backend="broken"'], ways['backend="wrong"']
    assert broken["standing"] == "failed"
    assert broken["problem"] == {"stage": "the backend", "error": "ValueError: it is broken"}
    assert wrong["standing"] == "differs"
    assert wrong["problem"]["error"].startswith("output differs by ")
    assert told["best"] is None
    assert told["calls"] == [{"callable": "Net", "captured": 3, "backward": True}]
    assert told["eager"]["step_seconds"] > 0
    assert [path.name for path in tmp_path.iterdir()] == ["train.py"]


SLOW_EAGER = """\
import time

import torch
from torch._dynamo import register_backend

@register_backend
def slow(graph, inputs):
    time.sleep(300)

def f(x):
    if not torch.compiler.is_compiling():
        time.sleep(0.005)
    return x + 1

g = torch.compile(f, backend="eager")
for step in range(50):
    g(torch.ones(8))
"""


@pytest.mark.slow
def test_an_interrupt_reports_what_is_measured_until_then(tmp_path: Path, valid: Valid) -> None:
    (tmp_path / "it.py").write_text(SLOW_EAGER, encoding="utf-8")
    words = [sys.executable, "-m", "breakscan", "bench"]
    words += ["--backends", "eager,slow,aot_eager", "--format", "json", "it.py"]
    with subprocess.Popen(words, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        assert any('backend="slow": compiling' in line for line in process.stderr)
        process.send_signal(signal.SIGINT)
        out, error = process.communicate(timeout=60)
    assert process.returncode == 130, error
    assert "Traceback" not in error
    told = valid(out, "bench")
    assert told["interrupted"] is True
    assert [(way["way"], way["standing"], way["same_as"]) for way in told["ways"]] == [
        ("program's own", "measured", None),
        ('backend="eager"', "skipped", "program's own"),
        ('backend="slow"', "skipped", None),
        ('backend="aot_eager"', "skipped", None),
    ]
    # What was measured by then is judged.
    own = told["ways"][0]
    assert own["ratio"]["low"] > 2
    assert own["processes"] == 1
    busy = any(note.startswith("other programs had the cores") for note in told["notes"])
    assert own["pays_after_calls"] is None if busy else 1 <= own["pays_after_calls"] < 10_000
    assert told["best"] == "program's own"
    assert told["write"] is None


RECOMPILES = """\
import torch
torch._dynamo.config.recompile_limit = 100_000

class Net(torch.nn.Module):
    n = 0

    def forward(self, x):
        self.n += 1
        return x * self.n

compiled = torch.compile(Net(), backend="eager")
for step in range(50):
    compiled(torch.ones(8))
"""


@pytest.mark.slow
def test_what_is_compiled_again_at_every_call_is_unsteady(tmp_path: Path, valid: Valid) -> None:
    (tmp_path / "it.py").write_text(RECOMPILES, encoding="utf-8")
    told = valid(ran(tmp_path, "bench", "--backends", "eager", "--format", "json", "it.py").stdout, "bench")
    own, same = told["ways"]
    assert own["standing"] == "unsteady"
    assert own["problem"]["stage"] == "recompiling"
    assert "n" in own["problem"]["error"]
    assert own["recompiles"] >= 5
    assert same["same_as"] == "program's own"


ENDED = """import os
import signal

import torch

def out_of_memory(graph, inputs):
    os.kill(os.getpid(), signal.SIGKILL)

f = torch.compile(lambda x: x.cos(), backend=out_of_memory)
for step in range(9):
    f(torch.ones(8))
"""


@pytest.mark.slow
def test_a_way_that_the_system_ends_is_told_and_the_others_are_measured(tmp_path: Path, valid: Valid) -> None:
    (tmp_path / "it.py").write_text(ENDED, encoding="utf-8")
    told = valid(ran(tmp_path, "bench", "--backends", "eager", "--format", "json", "it.py", brief=True).stdout, "bench")
    own, eager = told["ways"]
    assert own["standing"] == "failed"
    assert own["problem"]["error"] == "the program ended by SIGKILL, which the system sends where memory runs out"
    assert own["breaks"] is None
    assert eager["standing"] == "measured"


FAILS_LATER = (
    """\
from pathlib import Path

runs = Path("runs.txt")
with runs.open("a") as file:
    file.write(".")
if len(runs.read_text()) == 4:
    raise SystemExit(7)
"""
    + SLOW_EAGER
)


@pytest.mark.slow
def test_the_figures_of_a_process_stay_where_a_further_one_fails(tmp_path: Path, valid: Valid) -> None:
    (tmp_path / "it.py").write_text(FAILS_LATER, encoding="utf-8")
    told = valid(ran(tmp_path, "bench", "--backends", "eager", "--format", "json", "it.py", brief=True).stdout, "bench")
    own, _ = told["ways"]
    assert (own["standing"], own["processes"]) == ("measured", 1)
    assert own["ratio"]["low"] > 2
    (note,) = (note for note in told["notes"] if note.startswith("program's own was timed in one process alone"))
    assert note.startswith("program's own was timed in one process alone, as another one failed: ")
    assert told["best"] == "program's own"


def test_what_cannot_be_measured_is_said(tmp_path: Path) -> None:
    (tmp_path / "it.py").write_text("import torch\n1 / 0\n", encoding="utf-8")
    done = ran(tmp_path, "bench", "it.py", status=2)
    assert "failed before it called anything compiled: ZeroDivisionError: division by zero" in done.stderr
    assert "Traceback" not in done.stderr
