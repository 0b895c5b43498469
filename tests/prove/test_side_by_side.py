"""Ways that are compiled at the same time: how many, what they report, and how that is ended."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from breakscan.prove import trial
from breakscan.prove.protocol import CompileChoice
from breakscan.prove.variants import times_kernels

GB = 1 << 30


def limit(
    monkeypatch: pytest.MonkeyPatch,
    cores: int,
    free: int | None = 100 * GB,
    device: int | None = None,
    step: int = GB,
) -> int:
    monkeypatch.setattr("os.sched_getaffinity", lambda _: set(range(cores)))
    monkeypatch.setattr(trial, "_free_host_bytes", lambda: free)
    baseline: Any = SimpleNamespace(memory_bytes=step, host_bytes=2 * GB, free_device_bytes=device)
    return trial.at_once(baseline)


@pytest.mark.parametrize(("cores", "count"), [(1, 1), (2, 1), (7, 1), (8, 2), (16, 4), (128, 4)])
def test_cores_limit_how_many(monkeypatch: pytest.MonkeyPatch, cores: int, count: int) -> None:
    assert limit(monkeypatch, cores) == count


def test_memory_limits_how_many(monkeypatch: pytest.MonkeyPatch) -> None:
    assert limit(monkeypatch, 16, free=12 * GB) == 3
    assert limit(monkeypatch, 16, free=3 * GB) == 1
    assert limit(monkeypatch, 16, free=None) == 1, "what is not known is no permission"
    assert limit(monkeypatch, 16, device=80 * GB, step=10 * GB) == 2
    assert limit(monkeypatch, 16, device=80 * GB, step=70 * GB) == 1


def test_what_chooses_kernels_by_timing_them_is_compiled_alone() -> None:
    def choice(**options: Any) -> CompileChoice:
        return CompileChoice("inductor", 0, options, None, False)

    assert times_kernels(choice(max_autotune=True))
    assert not times_kernels(choice(max_autotune=False))
    assert not times_kernels(choice(**{"triton.cudagraphs": True}))
    assert not times_kernels(None)


TWO_AT_ONCE = """\
import sys
from breakscan.__main__ import main
import breakscan.prove.bench

breakscan.prove.bench.at_once = lambda _: 2
sys.exit(main(sys.argv[1:]))
"""
PROGRAM = """\
import os
import signal
import time
from pathlib import Path

import torch
from torch._dynamo import register_backend

Path("began").mkdir(exist_ok=True)


def met(count):
    Path("began", str(os.getpid())).touch()
    until = time.monotonic() + 60
    while len(os.listdir("began")) < count and time.monotonic() < until:
        time.sleep(0.01)
    return time.monotonic() < until


@register_backend
def first(graph, inputs):
    assert met(2), "the other one has not begun"
    return graph


@register_backend
def second(graph, inputs):
    assert met(2), "the other one has not begun"
    return graph


@register_backend
def dies_beside_others(graph, inputs):
    if len(os.listdir("began")) < 3:
        met(3)
        os.kill(os.getpid(), signal.SIGKILL)
    return graph


@register_backend
def endless(graph, inputs):
    met(9)


f = torch.compile(lambda x: x.cos() + 1, backend="eager")
for step in range(9):
    f(torch.ones(8))
"""


def start(folder: Path, *words: str, program: str = PROGRAM) -> subprocess.Popen[str]:
    (folder / "it.py").write_text(program, encoding="utf-8")
    command = [sys.executable, "-c", TWO_AT_ONCE, "bench", *words, "--format", "json", "it.py"]
    return subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


@pytest.mark.torch
@pytest.mark.slow
def test_ways_are_compiled_at_the_same_time(tmp_path: Path, valid: Callable[..., Any]) -> None:
    with start(tmp_path, "--backends", "first,second") as process:
        out, error = process.communicate(timeout=500)
    assert process.returncode == 0, error
    told = valid(out, "bench")
    assert told["compiled_at_once"] == 2
    assert [(way["way"], way["standing"]) for way in told["ways"]] == [
        ("program's own", "measured"),
        ('backend="first"', "measured"),
        ('backend="second"', "measured"),
    ]


@pytest.mark.torch
@pytest.mark.slow
def test_what_may_have_lacked_memory_beside_others_is_run_again_alone(
    tmp_path: Path, valid: Callable[..., Any]
) -> None:
    with start(tmp_path, "--backends", "first,second,dies_beside_others") as process:
        out, error = process.communicate(timeout=500)
    assert process.returncode == 0, error
    told = valid(out, "bench")
    assert told["ways"][-1]["way"] == 'backend="dies_beside_others"'
    assert told["ways"][-1]["standing"] == "measured", told["ways"][-1]


RECOMPILES = """\
import torch

torch._dynamo.config.recompile_limit = 2


@torch.compile(backend="aot_eager")
def f(x):
    return x.cos() + x.shape[0]


for step in range(9):
    f(torch.ones(8 + step))
"""


@pytest.mark.torch
@pytest.mark.slow
def test_dynamo_alone_runs_while_ways_are_compiled(tmp_path: Path, valid: Callable[..., Any]) -> None:
    words = ("--backends", "inductor", "--modes", "default", "--no-regional")
    with start(tmp_path, *words, program=RECOMPILES) as process:
        out, error = process.communicate(timeout=500)
    assert process.returncode == 0, error
    ways = {way["way"]: way["standing"] for way in valid(out, "bench")["ways"]}
    assert ways == {
        "program's own": "measured",
        'mode="default"': "measured",
        "dynamic=True": "measured",
        "dynamic=False": "unsteady",
    }
    said = error.splitlines()
    alone = [number for number, line in enumerate(said) if "dynamic=False: " in line]
    timed = [number for number, line in enumerate(said) if line.endswith(": timing")]
    assert len(alone) == 1
    assert alone[0] < timed[0]


@pytest.mark.torch
@pytest.mark.slow
def test_an_interrupt_ends_all_that_compile(tmp_path: Path) -> None:
    with start(tmp_path, "--backends", "first,endless") as process:
        assert process.stderr is not None
        assert any('backend="endless": compiling' in line for line in process.stderr)
        process.send_signal(signal.SIGINT)
        out, error = process.communicate(timeout=40)
    assert process.returncode == 130, error
    assert "Traceback" not in error
    assert '"interrupted": true' in out
