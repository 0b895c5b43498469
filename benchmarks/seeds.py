"""Compares known claims about torch.compile with measurements: well-known programs under every backend and mode, by
``breakscan bench``.

    python benchmarks/seeds.py --output FOLDER [--device cpu|cuda] [--only NAME ...] [--modes MODE ...] [--quick]
                               [--seconds N]

The programs are those of ``seed_programs/``.  FOLDER gets a file for each program; ``seeds.json`` and ``seeds.md`` are
written from all files there, of both devices, whenever one is added.  After N seconds the program that runs is
stopped and reported with the ways that are measured so far; later programs are reported as not run.  ``--quick``
uses tiny sizes, to test the benchmark itself.
"""

from __future__ import annotations

import argparse
import contextlib
import datetime
import json
import os
import platform
import re
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from breakscan.report.bench import count_words

HERE = Path(__file__).parent
DEVICES = ("cpu", "cuda")
BACKENDS = ("eager", "aot_eager", "cudagraphs", "inductor")
OWN = "program's own"
MODES = ("default", "reduce-overhead", "max-autotune-no-cudagraphs", "max-autotune")
IMAGES = 50_000
"""Those of CIFAR-10 to train on: an epoch."""
LAST_WORDS = 30.0
"""Seconds that it has to report after it is stopped."""


@dataclass(frozen=True)
class Seed:
    """``sizes`` are the program's arguments, or those by device; ``tiny`` those of a quick run.  ``calls`` are
    captured.  ``batch`` is given by device if epochs are needed."""

    name: str
    program: str
    sizes: str | Mapping[str, str]
    tiny: str
    calls: int = 3
    batch: Mapping[str, int] = field(default_factory=dict)

    def argv(self, device: str, quick: bool) -> list[str]:
        """The program and its arguments."""
        sizes = self.sizes if isinstance(self.sizes, str) else self.sizes[device]
        path = os.path.relpath(HERE / "seed_programs" / f"{self.program}.py")
        return [path, "--device", device, *(self.tiny if quick else sizes).split()]


# What takes longest, last.
SEEDS = (
    Seed("scalar", "sin_cos", "", ""),
    # Its values take longer to restore than to compute.
    Seed("64 M elements", "sin_cos", "--elements 64000000", "--elements 1000", calls=1),
    Seed("NumPy", "numpy_function", "--rows 1024 --columns 640", "--rows 32 --columns 16"),
    Seed("small CNN, training", "small_cnn", "--batch 64", "--batch 2"),
    Seed("small CNN, inference", "small_cnn", "--batch 64 --inference", "--batch 2 --inference"),
    Seed("ResNet-18", "resnet18", "--batch 16", "--batch 1 --side 32"),
    Seed("BERT-base", "bert_base", "--tokens 8", "--tokens 4 --layers 1"),
    Seed(
        "DenseNet-121, training",
        "densenet121",
        {"cpu": "--batch 4", "cuda": "--batch 64"},
        "--batch 2 --side 32 --blocks 2 2",
        batch={"cpu": 4, "cuda": 64},
    ),
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=Path, required=True, metavar="FOLDER")
    parser.add_argument("--device", choices=DEVICES, default="cpu")
    parser.add_argument("--only", nargs="+", metavar="NAME", help=f"of {', '.join(seed.name for seed in SEEDS)}")
    parser.add_argument("--modes", nargs="+", choices=MODES, default=MODES)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--seconds", type=float, default=7200.0, metavar="N")
    given = parser.parse_args()
    unknown = set(given.only or ()) - {seed.name for seed in SEEDS}
    if unknown:
        parser.error(f"there is no {sorted(unknown)[0]!r}: there are {', '.join(seed.name for seed in SEEDS)}")
    seeds = [seed for seed in SEEDS if not given.only or seed.name in given.only]
    given.output.mkdir(parents=True, exist_ok=True)
    until = time.monotonic() + given.seconds
    for seed in seeds:
        run(seed, given, until)
        by_device = collected(given.output)
        replace(given.output / "seeds.json", json.dumps(by_device, indent=1) + "\n")
        replace(given.output / "seeds.md", tables(by_device))
    print((given.output / "seeds.md").read_text())


# -- measuring ----------------------------------------------------------------------------------------------------


def run(seed: Seed, given: argparse.Namespace, until: float) -> None:
    """Measures a program, and writes the result."""
    part = given.output / f"{given.device}-{re.sub('[^a-z0-9]+', '-', seed.name.lower())}.json"
    report = part.with_suffix(".part")
    report.unlink(missing_ok=True)
    began = time.monotonic()
    problem = None if began < until else "not run: no time was left"
    if problem is None:
        say(f"{seed.name}: {' '.join(seed.argv(given.device, given.quick))}")
        command = [sys.executable, "-m", "breakscan", "bench", "--format", "json", "--output", str(report)]
        command += ["--backends", ",".join(BACKENDS), "--modes", ",".join(given.modes), "--no-dynamic"]
        command += ["--calls", str(seed.calls), *seed.argv(given.device, given.quick)]
        # A separate process group, so that the process can be ended with all its children.
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, start_new_session=True)
        try:
            problem = wait(process, until)
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
    row = {
        "name": seed.name,
        "device": given.device,
        "argv": seed.argv(given.device, given.quick),
        "batch": None if given.quick else seed.batch.get(given.device),
        "machine": machine(given.device),
        "seconds": round(time.monotonic() - began, 1),
    }
    if report.exists() and report.stat().st_size:
        row["bench"] = json.loads(report.read_text())
        report.unlink()
    elif problem is None:
        problem = f"not measured: it ended with exit status {process.returncode}"
    replace(part, json.dumps({**row, "problem": problem}, indent=1) + "\n")
    say(f"{seed.name}: {row['seconds']:.0f} s{f', {problem}' if problem else ''}")


def wait(process: subprocess.Popen[bytes], until: float) -> str | None:
    """Interrupts it when the time is over, and reports that."""
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(until - time.monotonic())
        return None
    process.send_signal(signal.SIGINT)
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(LAST_WORDS)
    return "stopped: no time was left"


def machine(device: str) -> dict[str, Any]:
    import torch

    lines = Path("/proc/cpuinfo").read_text().splitlines()
    cpu = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return {
        "date": datetime.date.today().isoformat(),
        "gpu": torch.cuda.get_device_name() if device == "cuda" else None,
        "cpu": cpu[0] if cpu else platform.processor(),
        "cores": os.cpu_count(),
        "pinned_to": len(os.sched_getaffinity(0)),
        "threads": torch.get_num_threads(),
        "torch": torch.__version__,
        "python": platform.python_version(),
    }


def collected(folder: Path) -> dict[str, list[dict[str, Any]]]:
    """The existing results, by device, in the order of the seeds."""
    order = [seed.name for seed in SEEDS]
    parts = [json.loads(path.read_text()) for path in sorted(folder.glob("c*-*.json"))]
    parts.sort(key=lambda part: order.index(part["name"]))
    return {device: mine for device in DEVICES if (mine := [part for part in parts if part["device"] == device])}


def replace(path: Path, text: str) -> None:
    partial = path.with_suffix(f".{os.getpid()}")
    partial.write_text(text)
    partial.replace(path)


def say(words: str) -> None:
    print(words, file=sys.stderr, flush=True)


# -- showing ------------------------------------------------------------------------------------------------------

COLUMNS = ("program", "way", "kernels", "launches", "compiling", "first call", "step", "times as fast", "pays after")

EPOCHS = ("program", "way", "first epoch", "epoch", "eager in turns with it", "less time an epoch")


def tables(by_device: Mapping[str, list[dict[str, Any]]]) -> str:
    """Markdown, with a table for each machine."""
    lines: list[str] = []
    for device, parts in by_device.items():
        lines += [f"## {'GPU' if device == 'cuda' else 'CPU'}", ""]
        for machine in dict.fromkeys(head(part["machine"]) for part in parts):
            mine = [part for part in parts if head(part["machine"]) == machine]
            columns = [column for column in COLUMNS if device == "cuda" or column != "launches"]
            cells = [[row[column] for column in columns] for part in mine for row in rows(part)]
            lines += [machine, "", *table(columns, cells), ""]
        epochs = [row for part in parts for row in epoch_rows(part)]
        if epochs:
            lines += [*table(list(EPOCHS), epochs), ""]
    return "\n".join(lines)


def table(columns: list[str], cells: list[list[str]]) -> list[str]:
    """A Markdown table, line by line."""
    return [f"| {' | '.join(columns)} |", f"|{' --- |' * len(columns)}", *(f"| {' | '.join(row)} |" for row in cells)]


def head(about: Mapping[str, Any]) -> str:
    gpu = f"{about['gpu']}; " if about["gpu"] else ""
    cores = f"{about['cpu']}, {about['cores']} cores, {about['threads']} thread{'s' * (about['threads'] > 1)}"
    return f"{gpu}{cores}; torch {about['torch']}, Python {about['python']}, {about['date']}."


def rows(part: Mapping[str, Any]) -> list[dict[str, str]]:
    """One for eager, one a way that was tried, and what was not reached.  What is the same as another is left out."""
    empty = {**dict.fromkeys(COLUMNS, ""), "program": part["name"]}
    bench = part.get("bench")
    found: list[dict[str, str]] = []
    left: list[str] = []
    if bench and bench["eager"]:
        eager, same = bench["eager"], bench["same"]
        found.append(
            {
                **empty,
                "way": "eager",
                "launches": launched(eager),
                "first call": duration(eager["first_call_seconds"]),
                "step": duration(eager["step_seconds"]),
                "times as fast": f"itself: {interval(same)}" if same else "",
            }
        )
        tried = [way for way in bench["ways"] if way["standing"] != "skipped"]
        found += [{**empty, "way": label(way), **cells_of(way)} for way in tried]
        known = {label(way) for way in tried}
        ended = [
            way for way in bench["ways"] if way["standing"] == "skipped" and "interrupted" in way["problem"]["error"]
        ]
        left = [name for way in ended if (name := label(way)) not in known]
    if part["problem"]:
        reached = f"; not reached: {', '.join(dict.fromkeys(left))}" if left else ""
        found.append({**empty, "way": f"{part['problem']}{reached}"})
    return found


def label(way: Mapping[str, Any]) -> str:
    """The programs use the defaults, so the default is their own way."""
    return f"`{way['way']}`" if way["way"] != OWN else '`mode="default"`'


def cells_of(way: Mapping[str, Any]) -> dict[str, str]:
    """The row of one way."""
    generates = bool(way["compile_seconds"].get("inductor"))
    row = {
        "kernels": ", ".join(f"{count} {kind}" for kind, count in way["kernels"].items())
        or ("not counted" if generates else ""),
        "launches": launched(way),
        "compiling": duration(way["compile_seconds"].get("total")),
        "first call": duration(way["first_call_seconds"]),
        "step": duration(way["step_seconds"]),
        "times as fast": interval(way["ratio"]) if way["ratio"] else "",
        "pays after": count_words(way["pays_after_calls"]) if way["pays_after_calls"] else "",
    }
    if way["standing"] != "measured":
        problem = way["problem"]
        words = f"{way['standing']}: {problem['error']}".splitlines()[0][:160]
        row["times as fast"] = f"{row['times as fast']} {words}".strip()
    elif not way["pays_after_calls"]:
        row["pays after"] = "within noise" if way["ratio"]["low"] > 1 else "never"
    return row


def epoch_rows(part: Mapping[str, Any]) -> list[list[str]]:
    """Derived: so many steps, of which in the first epoch one is the first call.  Each way was timed in turns with
    eager steps, which were not always equally fast."""
    bench = part.get("bench")
    if not part["batch"] or not bench or not bench["eager"]:
        return []
    steps = -(-IMAGES // part["batch"])
    found = []
    for way, one in [("eager", bench["eager"]), *((label(one), one) for one in bench["ways"])]:
        step, ratio = one["step_seconds"], one.get("ratio")
        if step:
            first = (steps - 1) * step + one["first_call_seconds"]
            eager, less = (
                (f"{steps * step * ratio['median']:.1f} s", f"{1 - 1 / ratio['median']:.0%}") if ratio else ("", "")
            )
            found.append([part["name"], way, f"{first:.0f} s", f"{steps * step:.1f} s", eager, less])
    return found


def launched(one: Mapping[str, Any]) -> str:
    launches = one["launches"]
    if not launches:
        return ""
    graphs = launches["cuda_graphs"]
    return f"{launches['kernels']}" + (f" + {graphs} CUDA graph{'s' * (graphs > 1)}" if graphs else "")


def interval(ratio: Mapping[str, float]) -> str:
    return f"{ratio['median']:.2f} [{ratio['low']:.2f}, {ratio['high']:.2f}]"


def duration(seconds: float | None) -> str:
    if seconds is None:
        return ""
    if seconds >= 1:
        return f"{seconds:.1f} s"
    return f"{seconds * 1e3:.1f} ms" if seconds >= 1e-3 else f"{seconds * 1e6:.1f} µs"


if __name__ == "__main__":
    main()
