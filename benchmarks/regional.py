"""Measures regional compilation of three models twice: by ``breakscan bench``, and by a timing script by hand.

    python benchmarks/regional.py --output FOLDER [--cpu] [--only NAME ...] [--by-hand-only] [--seconds N]

By hand, each way is a process of its own with an empty compiler cache and one thread that compiles: the seconds of its
first three steps, then the median of blocks of steps, as a user would time them.  All ways of all models are compiled
at the same time, then timed one after another while nothing else runs.  ``--cpu`` uses tiny sizes, to test the
benchmark itself.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import platform
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from turns import Turn, timed_blocks

HERE = Path(__file__).parent
PROGRAMS = HERE / "regional_programs"
TINY = {"decoder": (3, 64, 32), "vision_transformer": (3, 32, 2), "convolutions": (3, 8, 2)}
SIZES = {"decoder": (16, 512, 512), "vision_transformer": (24, 384, 16), "convolutions": (27, 64, 16)}
"""Models of up to 100 million parameters: bench copies and compares all values of a model several times."""
TRAINED = ("vision_transformer",)
WAYS = {
    "eager": "eager",
    "program's own": "whole",
    "repeated blocks": "blocks",
    "blocks + rest": "rest",
    "nested_compile_region": "nested",
}
COLD_STEPS = 3
LONGEST_BLOCK = 0.1


def time_way(name: str, way: str, cpu: bool) -> dict[str, float]:
    """The process of one way: what a user would write, timed."""
    import torch
    import torch._inductor.compile_fx  # bench does not time imports either

    sys.path.insert(0, str(PROGRAMS))
    program: Any = importlib.import_module(name)
    model, inputs = program.build("cpu" if cpu else "cuda", *(TINY if cpu else SIZES)[name])
    blocks = [one for one in model.modules() if type(one).__name__ == "Block"]
    if way == "whole":
        model = torch.compile(model)
    elif way == "nested":
        program.Block.forward = torch.compiler.nested_compile_region(program.Block.forward)
        model = torch.compile(model)
    elif way in ("blocks", "rest"):
        for block in blocks:
            block.compile()
        parts = [one for one in model.modules() if not any(True for _ in one.children())]
        inner = {id(one) for block in blocks for one in block.modules()}
        for part in parts if way == "rest" else ():
            if id(part) not in inner and any(True for _ in part.parameters()):
                part.forward = torch.compile(part.forward)

    def step() -> None:
        result = model(inputs)
        if name in TRAINED:
            result.sum().backward()
            for parameter in model.parameters():
                parameter.grad = None

    def wait() -> float:
        if not cpu:
            torch.cuda.synchronize()
        return time.perf_counter()

    with torch.set_grad_enabled(name in TRAINED):
        began = wait()
        for _ in range(COLD_STEPS):
            step()
        cold = wait() - began
        seconds = timed_blocks(step, wait, LONGEST_BLOCK)
    return {"cold_seconds": cold, "step_seconds": statistics.median(seconds)}


def way_of(name: str, way: str, cpu: bool, cache: str) -> Turn:
    """The process of one way of a model."""
    command = [__file__, "--way", way, "--only", name, *(["--cpu"] if cpu else []), "--output", cache]
    caches = {"TORCHINDUCTOR_CACHE_DIR": cache, "TRITON_CACHE_DIR": f"{cache}/triton"}
    return Turn(command, {**os.environ, **caches, "TORCHINDUCTOR_COMPILE_THREADS": "1"})


def by_hand(names: list[str], cpu: bool) -> dict[str, dict[str, dict[str, float]]]:
    """What each way of each model takes."""
    with tempfile.TemporaryDirectory() as caches:
        pairs = [(name, way) for name in names for way in WAYS.values()]
        ways = [way_of(name, way, cpu, f"{caches}/{name}-{way}") for name, way in pairs]
        for one in ways:
            one.wait()
        found: dict[str, dict[str, dict[str, float]]] = {name: {} for name in names}
        for one, (name, way) in zip(ways, pairs, strict=True):
            found[name][way] = one.result()
            print(f"{name}: {way} by hand: {found[name][way]}", file=sys.stderr, flush=True)
    return found


def by_bench(name: str, cpu: bool, output: Path, seconds: float) -> dict[str, Any]:
    """What ``bench`` reports, if need be of what it has measured until it is interrupted."""
    device = ["cpu" if cpu else "cuda", *map(str, (TINY if cpu else SIZES)[name])]
    words = ["--backends", "inductor", "--modes", "default", "--no-dynamic", "--calls", "1", "--format", "json"]
    path = output / f"{name}.json"
    train = ["train"] if name in TRAINED else []
    arguments = [*words, "-o", str(path), str(PROGRAMS / f"{name}.py"), *device, *train]
    with subprocess.Popen([sys.executable, "-m", "breakscan", "bench", *arguments]) as process:
        try:
            process.wait(seconds)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGINT)
    return json.loads(path.read_text()) if path.exists() else {}


def table(rows: list[dict[str, Any]]) -> str:
    lines = [
        "| model | way | cold, bench | cold, by hand | step, bench | step, by hand | × eager, bench | least time from |"
    ]
    lines.append("|" + " --- |" * 8)
    for row in rows:
        bench, hand = row["bench"], row["by_hand"]
        ways = {one["way"]: one for one in bench.get("ways", ())}
        ways["eager"] = {"step_seconds": (bench.get("eager") or {}).get("step_seconds")}
        starts = {one["way"]: one["from_call"] for one in bench.get("least_time", ())}
        for label, way in WAYS.items():
            one, other = ways.get(label, {}), hand.get(way, {})
            step = one.get("step_seconds")
            cold = one.get("cold_seconds")
            if cold is not None and step is not None:
                cold -= (one["cold_steps"] - COLD_STEPS) * step
            ratio = one.get("ratio")
            cells = [
                row["model"] + (", trained" if row["model"] in TRAINED else ""),
                label,
                told(cold, 1.0, "s"),
                told(other.get("cold_seconds"), 1.0, "s"),
                told(step, 1e3, "ms"),
                told(other.get("step_seconds"), 1e3, "ms"),
                "{median:.2f} [{low:.2f}, {high:.2f}]".format(**ratio) if ratio else (one.get("standing") or ""),
                f"{starts[label]:,} calls" if label in starts else "",
            ]
            lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def told(seconds: float | None, factor: float, unit: str) -> str:
    return "" if seconds is None else f"{seconds * factor:.2f} {unit}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--cpu", action="store_true")
    parser.add_argument("--only", nargs="*", metavar="NAME", default=list(TINY))
    parser.add_argument("--by-hand-only", action="store_true")
    parser.add_argument(
        "--seconds", type=float, default=3600.0, help="after which bench is interrupted, for each model"
    )
    parser.add_argument("--way", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.way:
        print(json.dumps(time_way(given.only[0], given.way, given.cpu)))
        return
    import torch

    device = torch.cuda.get_device_name() if torch.cuda.is_available() else "CPU"
    given.output.mkdir(parents=True, exist_ok=True)
    hand = by_hand(given.only, given.cpu)
    rows: list[dict[str, Any]] = [{"model": name, "bench": {}, "by_hand": hand[name]} for name in given.only]
    about = f"{device}, torch {torch.__version__}, Python {platform.python_version()}, {os.cpu_count()} CPU cores."

    def keep() -> None:
        (given.output / "regional.md").write_text(f"{about}\n\n{table(rows)}\n")
        (given.output / "regional.json").write_text(json.dumps(rows, indent=1) + "\n")

    keep()
    for row in [] if given.by_hand_only else rows:
        row["bench"] = by_bench(row["model"], given.cpu, given.output, given.seconds)
        keep()
    print((given.output / "regional.md").read_text())


if __name__ == "__main__":
    main()
