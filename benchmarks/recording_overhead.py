"""Measures what recording costs a program: in steady state, and while it compiles.

    python benchmarks/recording_overhead.py [--programs NAME ...] [--backends NAME ...] [--seconds S] [--pairs N]

Steady state: one process holds the same program several times, compiled without and with recording (from copies of its
source, since Dynamo caches by code object), and runs them in turns, block by block.  It prints the medians, over the
pairs of blocks, of the step and of what recording adds to it, with the 95 % interval of that median.

Compiling: the program's first three steps, in separate processes, with and without recording in turns; Inductor
with an empty cache and one thread.  It prints the medians over the pairs.
"""

from __future__ import annotations

import argparse
import gc
import importlib.util
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

PROGRAM = Path(__file__).parent / "recording_programs.py"
BACKENDS = ("eager", "inductor")
STEADY_BAR = 1.0
"""Percent of a step."""
COMPILE_BAR = 5.0
"""Percent of compiling."""
WARM_UP = 20
"""Steps before those that are timed."""
COPIES = 4
"""Copies of each program: one may lie better in memory than another, which changes the time by a percent."""
BLOCK = 0.005
"""Seconds of a block of steps: short, so that other load affects both equally."""


def program(name: str, backend: str) -> Callable[[], object]:
    """A step of a program, from a separate copy of its source."""
    spec = importlib.util.spec_from_file_location(f"program_{time.monotonic_ns()}", PROGRAM)
    assert spec
    assert spec.loader
    module: Any = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    step: Callable[[], object] = module.PROGRAMS[name](backend)
    for _ in range(WARM_UP):
        step()
    return step


def block(step: Callable[[], object], steps: int) -> tuple[float, float]:
    """Wall and CPU seconds of a step."""
    wall, cpu = time.perf_counter(), time.process_time()
    for _ in range(steps):
        step()
    return (time.perf_counter() - wall) / steps, (time.process_time() - cpu) / steps


def steady(name: str, backend: str, seconds: float) -> None:
    """Prints what recording adds to a step."""
    import torch._dynamo

    from breakscan.recording.recorder import Recorder

    plain, recorded = [], []
    with tempfile.TemporaryDirectory() as folder:
        for copy in range(COPIES):
            plain.append(program(name, backend))
            # A recorder hooks into everything that is compiled while it is entered, permanently.
            recording = Path(folder) / str(copy)
            recording.mkdir()
            with Recorder(recording):
                recorded.append(program(name, backend))
        once, _ = block(plain[0], 20)
        steps = max(1, round(BLOCK / once))
        pairs: list[Any] = []
        gc.collect()
        gc.freeze()
        ends = time.monotonic() + seconds
        while time.monotonic() < ends or len(pairs) < 10 * COPIES:
            copy, swapped = len(pairs) % COPIES, len(pairs) // COPIES % 2
            if swapped:
                second, first = block(recorded[copy], steps), block(plain[copy], steps)
            else:
                first, second = block(plain[copy], steps), block(recorded[copy], steps)
            pairs.append((first, second))
    words = []
    for kind, index in (("wall", 0), ("CPU", 1)):
        step = statistics.median(a[index] for a, _ in pairs)
        added = statistics.median(b[index] - a[index] for a, b in pairs)
        low, high = middle_of([b[index] - a[index] for a, b in pairs])
        words.append(
            f"{kind} {step * 1e6:8,.0f} µs a step {added * 1e6:+6.1f} µs = {added / step * 100:+5.2f} % "
            f"[{low / step * 100:+.2f}, {high / step * 100:+.2f}]"
        )
    print(f"{name:12} {backend:9} {'   '.join(words)}   {len(pairs)} pairs", flush=True)
    torch._dynamo.reset()


def middle_of(values: list[float]) -> tuple[float, float]:
    """The 95 % interval of the median."""
    values = sorted(values)
    reach = 0.98 * len(values) ** 0.5
    middle = len(values) / 2
    return values[max(0, int(middle - reach))], values[min(len(values) - 1, int(middle + reach))]


def compiling(name: str, backend: str, pairs: int) -> None:
    """Prints what recording adds to compiling, as a fraction."""
    found: dict[bool, list[dict[str, float]]] = {False: [], True: []}
    for turn in range(pairs):
        for recorded in (turn % 2 == 0, turn % 2 == 1):
            found[recorded].append(run(name, backend, recorded))
    plain, recorded_ = found[False], found[True]
    middle = {key: statistics.median(times[key] for times in plain) for key in plain[0]}
    added = {key: statistics.median(b[key] - a[key] for a, b in zip(plain, recorded_, strict=True)) for key in plain[0]}
    words = [f"{kind} {added[key] / middle[key] * 100:+5.1f} %" for key, kind in (("wall", "wall"), ("cpu", "CPU"))]
    whole = f"whole process {added['whole'] * 1e3:+.0f} ms CPU, {added['whole'] / middle['cpu'] * 100:+.1f} %"
    print(f"{name:12} {backend:9} {middle['wall']:10.2f} s to compile   {'   '.join(words)}   {whole}", flush=True)


def run(name: str, backend: str, recorded: bool) -> dict[str, float]:
    """The times that a process measured of itself, in seconds."""
    from breakscan.recording.launch import INJECTED

    with tempfile.TemporaryDirectory() as folder:
        recording = Path(folder) / "recording"
        recording.mkdir()
        environment = {
            **os.environ,
            "TORCHINDUCTOR_CACHE_DIR": str(Path(folder) / "cache"),
            "TORCHINDUCTOR_COMPILE_THREADS": "1",
        }
        if recorded:
            environment |= {"PYTHONPATH": str(INJECTED), "BREAKSCAN_RECORDING": str(recording)}
        done = subprocess.run(
            [sys.executable, str(PROGRAM), name, backend], env=environment, capture_output=True, text=True, check=True
        )
        if recorded and not any(recording.iterdir()):
            sys.exit("nothing was recorded")
        times: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
        return times


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--programs", nargs="+", default=["mlp", "transformer", "broken"])
    parser.add_argument("--backends", nargs="+", default=list(BACKENDS))
    parser.add_argument("--seconds", type=float, default=20.0, help="of steady state, for each program")
    parser.add_argument("--pairs", type=int, default=5, help="of processes that compile, for each program")
    options = parser.parse_args()
    import torch

    torch.set_num_threads(1)
    print(f"torch {torch.__version__}, Python {sys.version.split()[0]}, {os.cpu_count()} cores")
    cases = [(name, backend) for name in options.programs for backend in options.backends]
    if options.seconds:
        print(f"\nsteady state; the bar is {STEADY_BAR:.0f} % (broken: no bar, the worst that there is)")
        for name, backend in cases:
            steady(name, backend, options.seconds)
    if options.pairs:
        print(f"\ncompiling; the bar is {COMPILE_BAR:.0f} %")
        for name, backend in cases:
            compiling(name, backend, options.pairs)


if __name__ == "__main__":
    main()
