"""Ways on several devices: who is timed with whom, and what the report says. No GPU is needed: the devices are those of
``CUDA_VISIBLE_DEVICES``, which the processes see.
"""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from breakscan.prove.bench import device_comparison
from breakscan.prove.bench_result import Bench, DeviceComparison, DeviceUse
from breakscan.prove.devices import Placement
from breakscan.prove.faster import Ratio
from breakscan.prove.trial import time_all
from breakscan.report.bench import basis_words

FIRST, SECOND = Placement(0, "0,1"), Placement(1, "1,0")
EVEN, FAR = Ratio(1.0, 0.99, 1.01), Ratio(1.2, 1.19, 1.21)


@dataclass
class Trial:
    placement: Placement
    meets: threading.Barrier
    busy: dict[Placement, threading.Lock]

    def time(self) -> None:
        assert self.busy[self.placement].acquire(blocking=False), "two on one device"
        self.meets.wait(20)
        self.busy[self.placement].release()

    def interrupt(self) -> None:
        self.meets.abort()


def test_one_is_timed_on_each_device() -> None:
    meets, busy = threading.Barrier(2), {FIRST: threading.Lock(), SECOND: threading.Lock()}
    trials: Any = [Trial(one, meets, busy) for one in (FIRST, SECOND, FIRST, SECOND)]
    time_all(trials)


@pytest.mark.parametrize(
    ("slower", "beside", "use"),
    [
        (1.0, 1.0, DeviceUse.TIMED_AT_ONCE),
        (0.95, 1.04, DeviceUse.TIMED_AT_ONCE),
        (1.0, 1.3, DeviceUse.TIMED_IN_TURNS),
        (1.2, 1.0, DeviceUse.NONE),
        (0.8, 1.0, DeviceUse.NONE),
    ],
)
def test_what_a_device_is_used_for(slower: float, beside: float, use: DeviceUse) -> None:
    assert device_comparison._use(slower, beside) is use


def test_the_report_says_what_devices_were_used_for() -> None:
    bench = Bench((), {"device": "cuda", "torch": "2"}, {}, frozenset(), ())

    def said(*devices: DeviceComparison) -> str:
        return " ".join(basis_words(replace(bench, devices=devices)))

    assert said(DeviceComparison("cuda:1", DeviceUse.TIMED_AT_ONCE, EVEN, EVEN)) == (
        "Ways were compiled on 2 devices, and timed there at the same time, each in turns with eager steps of its "
        "device. An eager step takes 1.00× [0.99, 1.01] as long on cuda:1 as on the first one, and 1.00× as long "
        "beside others."
    )
    assert "and timed one after another" in said(DeviceComparison("cuda:1", DeviceUse.TIMED_IN_TURNS, EVEN, FAR))
    assert said(DeviceComparison("cuda:1", DeviceUse.NONE, FAR, EVEN)) == (
        "cuda:1 is left out: an eager step takes 1.20× [1.19, 1.21] as long there."
    )
    assert "the cores are not enough" in said(DeviceComparison("cuda:1", DeviceUse.TOO_FEW_CORES))
    assert "does not run there: no memory" in said(DeviceComparison("cuda:1", DeviceUse.NONE, error="no memory"))


TWO_DEVICES = """\
import sys
from breakscan.__main__ import main
from breakscan.prove.bench import bench, device_comparison, eager_baseline
from breakscan.prove.devices import Placement

bench.placements = lambda _: (Placement(0, "0,1"), Placement(1, "1,0"))
for one in (eager_baseline, device_comparison):
    one.require_one_device = lambda about, placement: None
device_comparison.usable_cores = lambda: 8
# This machine is busy with other tests.
device_comparison.ALIKE = device_comparison.BESIDE = 1e9
bench.at_once = lambda _: 2
sys.exit(main(sys.argv[1:]))
"""
PROGRAM = """\
import os
from pathlib import Path

import torch

Path("seen").mkdir(exist_ok=True)
Path("seen", f"{os.getpid()} {os.environ['CUDA_VISIBLE_DEVICES']}").touch()
f = torch.compile(lambda x: x.cos() + 1, backend="eager")
for step in range(9):
    f(torch.ones(8))
"""


@pytest.mark.torch
@pytest.mark.slow
def test_ways_run_on_all_devices(tmp_path: Path, valid: Callable[..., Any]) -> None:
    (tmp_path / "it.py").write_text(PROGRAM, encoding="utf-8")
    words = ["bench", "--devices", "0,1", "--backends", "eager,aot_eager", "--format", "json", "it.py"]
    command = [sys.executable, "-c", TWO_DEVICES, *words]
    found = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=500, check=False)
    assert found.returncode == 0, found.stderr
    told = valid(found.stdout, "bench")
    assert [(one["device"], one["use"]) for one in told["devices"]] == [("cuda:1", "timed-at-once")]
    measured = [way for way in told["ways"] if way["standing"] == "measured"]
    assert {way["device"] for way in measured} == {"cuda:0", "cuda:1"}
    seen = [path.name.partition(" ")[2] for path in (tmp_path / "seen").iterdir()]
    # Two eager processes and a way; an eager process and a way.
    assert seen.count("0,1") >= 3
    assert seen.count("1,0") >= 2
