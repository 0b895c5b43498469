"""The time of ``breakscan verify`` and ``bench``, for programs of which the goal is known.

    python benchmarks/time_to_verdict.py [--only NAME ...] [--cuda] [--output FILE]

``--cuda`` runs the programs on a GPU.  Wall time says little on a machine that does other work: CPU seconds, of all
processes, are next to it.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent
LOOP = str(HERE / "moe_programs" / "loop.py")
TWO = str(HERE / "timed_programs" / "two_rewrites.py")

SMALL = ("cuda", "2", "256", "8", "2", "8", "256")
LARGE = ("cuda", "4", "1024", "4", "2", "8", "256")


@dataclass(frozen=True)
class Timed:
    """``words`` are the arguments of ``breakscan``, ``goal`` is in seconds."""

    name: str
    words: tuple[str, ...]
    goal: int
    cuda: bool = False


TIMED = (
    Timed("two rewrites, verify", ("verify", TWO), 40),
    Timed("experts, bench", ("bench", "--no-autotune", LOOP), 120),
    Timed("experts, verify", ("verify", LOOP), 120),
    Timed("Trainer, verify", ("verify", str(HERE / "verified_programs" / "huggingface_trainer.py")), 150),
    Timed("two rewrites, verify", ("verify", TWO, "cuda"), 45, cuda=True),
    Timed("experts, 8 M parameters, verify", ("verify", LOOP, *SMALL), 45, cuda=True),
    Timed("experts, 8 M parameters, bench", ("bench", "--no-autotune", LOOP, *SMALL), 120, cuda=True),
    Timed("experts, 138 M parameters, verify", ("verify", LOOP, *LARGE), 45, cuda=True),
)


def run(one: Timed) -> tuple[float, float, str]:
    """The wall and CPU seconds of a command, and what it wrote."""
    used = _cpu_seconds()
    began = time.monotonic()
    command = [sys.executable, "-m", "breakscan", *one.words]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    return time.monotonic() - began, _cpu_seconds() - used, done.stdout


def _cpu_seconds() -> float:
    spent = resource.getrusage(resource.RUSAGE_CHILDREN)
    return spent.ru_utime + spent.ru_stime


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="*", metavar="NAME", default=[""], help="programs whose names begin so")
    parser.add_argument("--cuda", action="store_true")
    parser.add_argument("--output", type=Path, help="where the table and the reports are written, too")
    given = parser.parse_args()
    lines = ["| command | wall | CPU | goal |", "| --- | --- | --- | --- |"]
    reports = []
    for one in TIMED:
        if one.cuda is not given.cuda or not one.name.startswith(tuple(given.only)):
            continue
        wall, cpu, report = run(one)
        lines.append(f"| {one.name} | {wall:.0f} s | {cpu:.0f} s | {one.goal} s |")
        reports.append(f"## {one.name}\n\n{report}")
        print(lines[-1], f"load {os.getloadavg()[0]:.1f}", file=sys.stderr, flush=True)
        if given.output is not None:
            given.output.write_text("\n".join([*lines, "", *reports]))
    print("\n".join(lines))


if __name__ == "__main__":
    main()
