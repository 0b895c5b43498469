"""Compares ``breakscan bench`` with a timing script that is written by hand.

    python benchmarks/bench_by_hand.py [--only NAME ...] [--runs N] [--busy N]

For each program of ``by_hand_programs/``:

- the ratio of eager to compiled steps, by ``breakscan bench`` and by hand: warmed up, in turns, in one process.  Both
  are measured several times, because processes of the same program differ;
  With ``--busy 10``, ten processes that never wait run next to bench, and not next to what is timed by hand;
- the number of calls after which compiling pays: processes that only make calls, eager and compiled, each from
  empty compiler caches, until the total times of all calls are equal.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from itertools import accumulate
from pathlib import Path
from types import ModuleType
from typing import Any

from breakscan.prove.fork_server import ALLOCATOR

HERE = Path(__file__).parent
PROGRAMS = HERE / "by_hand_programs"
NAMES = ("gates", "gpt", "colours")
HANDS = 2
"""Processes by hand, after each run of bench."""
ROUNDS = 30
BLOCK = 0.04
"""Seconds of a block of steps."""
BEYOND = 1.6
"""The factor by which more calls are counted than bench reports."""
LONGEST = 240.0
"""The largest total of eager seconds for which calls are counted."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", choices=NAMES, default=NAMES)
    parser.add_argument("--runs", type=int, default=3, metavar="N")
    parser.add_argument("--busy", type=int, default=0, metavar="N")
    # Options of the processes of this file.
    parser.add_argument("--turns", help=argparse.SUPPRESS)
    parser.add_argument("--calls", nargs=3, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.turns:
        json.dump(_in_turns(given.turns), sys.stdout)
    elif given.calls:
        name, kind, count = given.calls
        json.dump(_first_calls(name, kind, int(count)), sys.stdout)
    else:
        print("| program | bench | two equal processes | by hand | pays after, bench | counted |")
        print("| --- | --- | --- | --- | --- | --- |")
        for name in given.only:
            print(_row(name, given.runs, given.busy), flush=True)


@contextlib.contextmanager
def _busy(count: int) -> Iterator[None]:
    """Processes that never wait, while the block runs."""
    processes = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(count)]
    try:
        yield
    finally:
        for one in processes:
            one.kill()


def _row(name: str, runs: int, busy: int) -> str:
    command = [sys.executable, "-m", "breakscan", "bench", "--format", "json", *_ONLY_OWN, _path(name)]
    reports, hand = [], []
    for _ in range(runs):
        with _busy(busy):
            reports.append(_json(command))
        hand += [_json(_myself("--turns", name)) for _ in range(HANDS)]
    ratios = [_own_way(report)["ratio"] for report in reports]
    middle = statistics.median(one[1] for one in hand)
    inside = sum(one["low"] <= middle <= one["high"] for one in ratios)
    pays = [calls for report in reports if (calls := _own_way(report)["pays_after_calls"])]
    calls = round(statistics.median(pays)) if pays else None
    seconds = (calls or 0) * BEYOND * reports[-1]["eager"]["step_seconds"]
    counted = "-" if not calls else _counted(name, calls) if seconds < LONGEST else f"would take {seconds:.0f} s"
    cells = [
        name,
        ", ".join(map(_interval, ratios)),
        ", ".join(_interval(report["same"]) for report in reports),
        f"{', '.join(_interval(dict(zip(('low', 'median', 'high'), one, strict=True))) for one in hand)}: "
        f"their median lies in {inside} of {runs}",
        ", ".join(f"{one:,}" for one in pays) or "never",
        counted,
    ]
    return f"| {' | '.join(cells)} |"


def _interval(ratio: Any) -> str:
    return f"{ratio['median']:.2f} [{ratio['low']:.2f}, {ratio['high']:.2f}]"


_ONLY_OWN = ("--backends", "eager", "--no-dynamic")
"""One backend next to the program's own way, which cannot be selected alone."""


def _own_way(report: Any) -> Any:
    return next(way for way in report["ways"] if not way["options"] and not way["settings"])


def _counted(name: str, calls: int) -> str:
    """The call at which the total times of all calls are equal, from separate processes."""
    count = round(calls * BEYOND)
    sums = {kind: list(accumulate(_json(_myself("--calls", name, kind, str(count))))) for kind in ("eager", "compiled")}
    met = next((at for at, (eager, own) in enumerate(zip(*sums.values(), strict=True), 1) if own <= eager), None)
    at_reported = sums["compiled"][calls - 1] / sums["eager"][calls - 1]
    where = f"{met:,} calls, {met / calls:.2f} of the median reported" if met else f"not within {count:,} calls"
    return f"{where}; at the median reported, compiled had taken {at_reported:.2f} of eager"


def _path(name: str) -> str:
    return str(PROGRAMS / f"{name}.py")


def _myself(*words: str) -> list[str]:
    return [sys.executable, __file__, *words]


def _json(command: list[str]) -> Any:
    """The output of a command that is run with empty compiler caches, and glibc's allocator as bench sets it."""
    with tempfile.TemporaryDirectory() as folder:
        env = {
            **ALLOCATOR,
            **os.environ,
            "TORCHINDUCTOR_CACHE_DIR": f"{folder}/inductor",
            "TRITON_CACHE_DIR": f"{folder}/triton",
            "PYTHONPATH": os.pathsep.join([str(HERE.parent), os.environ.get("PYTHONPATH", "")]),
        }
        done = subprocess.run(command, stdout=subprocess.PIPE, env=env, text=True, check=True)
    return json.loads(done.stdout)


def _program(name: str) -> ModuleType:
    sys.path.insert(0, str(PROGRAMS))
    return importlib.import_module(name)


def _in_turns(name: str) -> tuple[float, float, float]:
    """The ratio of eager to compiled steps, with its interval: low, median, high."""
    import torch

    program = _program(name)
    step, model = program.step, program.model
    compiled = torch.compile(model)
    for call in (model, compiled):
        for _ in range(20):
            step(call)
    began = time.perf_counter()
    step(model)
    size = max(1, round(BLOCK / (time.perf_counter() - began)))
    ratios = []
    for _ in range(ROUNDS):
        seconds = []
        for call in (model, compiled):
            began = time.perf_counter()
            for _ in range(size):
                step(call)
            seconds.append(time.perf_counter() - began)
        ratios.append(seconds[0] / seconds[1])
    source = random.Random(0)
    medians = sorted(statistics.median(source.choices(ratios, k=ROUNDS)) for _ in range(1000))
    return medians[25], statistics.median(ratios), medians[974]


def _first_calls(name: str, kind: str, count: int) -> list[float]:
    """The seconds of the first calls of a process, one by one."""
    import torch

    program = _program(name)
    step, model = program.step, program.model
    call = torch.compile(model) if kind == "compiled" else model
    seconds = []
    for _ in range(count):
        began = time.perf_counter()
        step(call)
        seconds.append(time.perf_counter() - began)
    return seconds


if __name__ == "__main__":
    main()
