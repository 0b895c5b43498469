"""What ran, and what breaks cost: on programs that sleep for a known time where they break."""

import os
import signal
import subprocess
import sys
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import pytest
from programs import environment, explained_records, warm_process

from breakscan.explanation.breaks import BreakSite
from breakscan.explanation.explanation import Explanation
from breakscan.explanation.frames import FrameStatus
from breakscan.model.findings import Verdict
from breakscan.recording.launch import INJECTED, ProgramExit
from breakscan.recording.recording import read_recording
from breakscan.recording.records import CallsRan, GraphRan, HookFailed, Record, Usual

pytestmark = pytest.mark.torch
torch = pytest.importorskip("torch")

BUSY = 0.015
"""Seconds for which a machine that is busy may leave a program waiting, in the mean."""

TWO_BREAKS = """import statistics, time, torch

slept = {}

@torch.compiler.disable
def wait(seconds):
    began = time.perf_counter()
    time.sleep(seconds)
    slept.setdefault(seconds, []).append(time.perf_counter() - began)

def f(x):
    y = x.sin()
    wait(0.050)  # long
    y = y.cos() * 2
    wait(0.020)  # short
    return y.tanh()

compiled = torch.compile(f, backend=BACKEND)
for _ in range(11):
    compiled(torch.ones(8, requires_grad=True)).sum().backward()
print(*(statistics.median_low(times[1:]) for times in slept.values()))
"""


@dataclass
class Ran:
    """A program that was recorded: how it ended, its records, and their explanation."""

    status: int
    out: str
    err: str
    records: list[list[Record]]
    explanation: Explanation
    lines: list[str]

    def last(self, kind: type[Any], process: int = 0) -> dict[int, Any]:
        """The records of a kind that count, by what they are about."""
        of_kind = [record for record in self.records[process] if isinstance(record, kind)]
        return {getattr(record, fields(record)[0].name): record for record in of_kind}

    def site(self, mark: str) -> BreakSite:
        """The site on the line that carries the comment ``# MARK``."""
        line = next(number for number, text in enumerate(self.lines, 1) if text.endswith(f"# {mark}"))
        return next(site for site in self.explanation.breaks if site.site.line == line)


@pytest.fixture
def run(tmp_path: Path) -> Any:
    """Runs a program; in a process of its own if it is ``alone``, or to be killed."""

    def run(text: str, kill_after_line: str | None = None, alone: bool = False) -> Ran:
        script, recording = tmp_path / "script.py", tmp_path / "recording"
        script.write_text(text, encoding="utf-8")
        recording.mkdir()
        if alone or kill_after_line is not None:
            status, out, err = run_alone(script, recording, kill_after_line)
        else:
            status = warm_process().run(script, recording).status
            out, err = (script.with_suffix(ending).read_text(encoding="utf-8") for ending in (".out", ".err"))
        records = read_recording(recording)
        assert not [r for process in records for r in process if isinstance(r, HookFailed)]
        return Ran(
            status, out, err, records, explained_records(records, script, ProgramExit(status, 1.0)), text.splitlines()
        )

    return run


def run_alone(script: Path, recording: Path, kill_after_line: str | None) -> tuple[int, str, str]:
    env = {**environment(), "PYTHONPATH": str(INJECTED), "BREAKSCAN_RECORDING": str(recording)}
    program = subprocess.Popen(
        [sys.executable, str(script)], env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    if kill_after_line is not None:
        assert program.stdout
        while program.stdout.readline() not in (kill_after_line + "\n", ""):
            pass
        program.kill()
    out, err = program.communicate(timeout=120)
    return program.returncode, out, err


@pytest.mark.parametrize("backend", ["eager", "aot_eager", pytest.param("inductor", marks=pytest.mark.slow)])
def test_a_break_costs_what_lies_behind_it(run: Any, backend: str) -> None:
    ran = run(TWO_BREAKS.replace("BACKEND", repr(backend)))
    assert ran.status == 0, ran.err
    for mark, seconds in zip(("long", "short"), map(float, ran.out.split()), strict=True):
        price = ran.site(mark).price
        assert price is not None
        # The first call compiles: it is left out.
        assert price.passes == 10
        assert seconds <= price.host_seconds < seconds + BUSY
        assert price.device_seconds is None
        assert not price.waits
        assert price.compile_seconds > 0
    graphs = ran.explanation.graphs
    assert [graph.runs for graph in graphs] == [11, 11, 11]
    assert [graph.ended_by for graph in graphs] == [ran.site("long").site, ran.site("short").site, None]
    assert all(graph.seconds is not None and graph.seconds < 1 for graph in graphs)
    (calls,) = ran.explanation.calls
    assert (calls.name, calls.calls) == ("f", 10)
    assert 0.7 <= calls.gap_seconds <= calls.outside_seconds <= calls.seconds
    assert calls.graph_seconds + calls.gap_seconds <= calls.seconds


def test_a_break_within_a_call_is_passed_once(run: Any) -> None:
    """The function that breaks is compiled with its caller, and once alone: both end a graph there."""
    ran = run(
        """import time, torch

@torch.compiler.disable
def wait():
    time.sleep(0.005)

def inner(x):
    y = x.exp()
    wait()  # here
    return y.sin()

def f(x):
    return inner(x.cos()) + 1

compiled = torch.compile(f, backend="eager")
for _ in range(11):
    compiled(torch.ones(8))
"""
    )
    price = ran.site("here").price
    assert price is not None
    assert price.passes == 10
    assert 0.05 <= price.host_seconds * 10 < ran.explanation.calls[0].seconds


def test_a_function_that_runs_eager_costs_its_calls(run: Any) -> None:
    ran = run(
        """import time, torch

@torch.compiler.disable
def nap(x):
    time.sleep(0.006)
    return x

def f(x):
    for _ in range(2):
        x = x.sin()
        if x.sum() > 5:  # here
            x = x.cos()
    return nap(x)

compiled = torch.compile(f, backend="eager")
for _ in range(11):
    compiled(torch.ones(8))
"""
    )
    (frame,) = [frame for frame in ran.explanation.frames if frame.status is FrameStatus.EAGER]
    assert frame.function == "f"
    assert frame.price is not None
    assert frame.price.passes == 10
    assert 0.06 <= frame.price.host_seconds * 10 == pytest.approx(ran.explanation.calls[0].seconds)
    site = ran.site("here")
    assert site.verdict is Verdict.EAGER
    assert site.price == frame.price
    assert ran.explanation.calls[0].graph_seconds == 0


def test_waiting_for_a_device_is_no_cost_of_a_function_that_runs_eager(run: Any) -> None:
    """As on a GPU that computes for 1 ms of the 10 that the host waits for it."""
    ran = run(
        """import time, torch

def f(x):
    for _ in range(2):
        x = x.sin()
        if x.sum() > 5:  # here
            x = x.cos()
    time.sleep(0.010)
    return x

compiled = torch.compile(f, backend="eager")
for _ in range(6):
    compiled(torch.ones(8))
"""
    )
    assert ran.site("here").price.seconds >= 0.010
    (calls,) = ran.last(CallsRan).values()
    on_device = replace(calls, timed_on_device=3, outside=Usual(0.001, 0.001, 0.001))
    told = explained_records([[*ran.records[0], on_device], *ran.records[1:]], Path("script.py"))
    (frame,) = [frame for frame in told.frames if frame.status is FrameStatus.EAGER]
    (site,) = told.breaks
    assert site.price == frame.price
    assert site.price is not None
    assert site.price.is_on_device
    assert site.price.seconds == pytest.approx(0.001)
    assert site.price.host_seconds >= 0.010


def test_what_is_given_up_for_another_break_costs_that_one(run: Any) -> None:
    ran = run(
        """import time, torch

@torch.compiler.disable
def nap(x):
    time.sleep(0.006)
    return x

def f(x):
    x = x.sin()
    torch._dynamo.graph_break()  # before
    for _ in range(2):
        x = x.sin()
        if x.sum() > 5:  # loop
            x = x.cos()
    return nap(x)

compiled = torch.compile(f, backend="eager")
for _ in range(11):
    compiled(torch.ones(8))
"""
    )
    loop, before = ran.site("loop").price, ran.site("before").price
    assert loop is not None
    assert loop.passes == 10
    assert loop.host_seconds >= 0.006
    assert before is not None
    assert (before.passes, before.host_seconds) == (0, 0.0)
    assert before.compile_seconds > 0


def test_what_falls_into_compiling_is_left_out(run: Any) -> None:
    """A call in which the rest is compiled again is no steady call, and its gap is none."""
    ran = run(
        """import torch

def f(x, n):
    y = x.sin()
    torch._dynamo.graph_break()  # here
    return y * n if n != 3 else y

compiled = torch.compile(f, backend="eager", dynamic=False)
for n in (0, 1, 2, 3, 0, 1, 2, 3):
    compiled(torch.ones(8), n)
"""
    )
    assert len(ran.explanation.recompiles) >= 3
    price = ran.site("here").price
    assert price is not None
    (calls,) = ran.explanation.calls
    assert price.passes == calls.calls == 4
    assert price.host_seconds < price.compile_seconds / 4


def test_an_exception_ends_a_call_and_nothing_else(run: Any, tmp_path: Path) -> None:
    text = """import time, traceback, torch

@torch.library.custom_op("breakscan::boom", mutates_args=())
def boom(x: torch.Tensor, fails: bool) -> torch.Tensor:
    if fails:
        raise ValueError("on purpose")
    return x.clone()

@boom.register_fake
def _(x, fails):
    return torch.empty_like(x)

@torch.compiler.disable
def gap(fails):
    if fails:
        raise KeyError("in the gap")
    time.sleep(0.002)

def f(x, in_graph, in_gap):
    y = x.sin()
    gap(in_gap)  # here
    return boom(y.cos(), in_graph)

compiled = torch.compile(f, backend="eager", dynamic=False)
cases = [(False, False), (True, False), (False, True)]
for case in cases * 2 + [(False, False)] * 5:
    try:
        compiled(torch.ones(8), *case)
    except (ValueError, KeyError):
        traceback.print_exc()
        compiled(torch.ones(8), False, False)
"""
    ran = run(text, alone=True)
    plain = subprocess.run(
        [sys.executable, str(tmp_path / "script.py")], env=environment(), capture_output=True, text=True, timeout=120
    )
    assert (ran.status, ran.out) == (plain.returncode, plain.stdout)
    assert ran.err == plain.stderr
    assert ran.err.count("on purpose") == 4
    (calls,) = ran.explanation.calls
    # Those that raised are none, nor those that compiled: one for each combination of the flags, less one that raised.
    assert calls.calls == 10
    price = ran.site("here").price
    assert price is not None
    assert 0.002 <= price.host_seconds * 10 < ran.explanation.calls[0].seconds


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_process_counts_for_itself(run: Any) -> None:
    ran = run(
        """import os, sys, torch

def f(x):
    y = x.sin()
    torch._dynamo.graph_break()  # here
    return y.cos()

def g(x):
    return x.tan()

compiled = torch.compile(f, backend="eager")
for _ in range(6):
    compiled(torch.ones(8))
if os.fork() == 0:
    for _ in range(3):
        compiled(torch.ones(8))
    own = torch.compile(g, backend="eager")
    for _ in range(4):
        own(torch.ones(8))
    sys.exit()
os.wait()
compiled(torch.ones(8))
"""
    )
    assert [record.runs for record in ran.last(GraphRan, 0).values()] == [7, 7]
    assert [record.runs for record in ran.last(GraphRan, 1).values()] == [3, 3, 4]
    assert [graph.runs for graph in ran.explanation.graphs] == [10, 10, 4]
    assert {calls.name: calls.calls for calls in ran.explanation.calls} == {"f": 9, "g": 3}
    price = ran.site("here").price
    assert price is not None
    assert price.passes == 9


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX signals")
def test_kill_leaves_what_ran_until_then(run: Any) -> None:
    ran = run(
        """import time, torch

def f(x):
    y = x.sin()
    torch._dynamo.graph_break()  # here
    return y.cos()

compiled = torch.compile(f, backend="eager")
for n in range(10**9):
    compiled(torch.ones(8))
    time.sleep(0.001)
    if n == 1000:
        print("now", flush=True)
""",
        kill_after_line="now",
    )
    assert ran.status == -signal.SIGKILL
    runs = ran.last(GraphRan)[0].runs
    assert runs > 100
    price = ran.site("here").price
    assert price is not None
    assert 100 < price.passes <= runs
