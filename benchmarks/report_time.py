"""The time of a report by the number of break sites: it should be linear in what was recorded.

    python benchmarks/report_time.py --functions 100 400

Makes a program of so many compiled functions with three break sites each, records it under ``breakscan explain`` with
the ``eager`` backend, and reports the recording in each format.  CPU seconds of the whole command, the best of three,
compared with those of reading the recording's lines as JSON in the same run.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from resource import RUSAGE_CHILDREN, getrusage

FORMATS = ("terminal", "json", "html", "markdown")
READ = "import json, pathlib, sys; [json.loads(l) for f in pathlib.Path(sys.argv[1]).glob('*.jsonl') for l in f.open()]"
RUN = """
import torch
import functions

for name, function in list(vars(functions).items()):
    if name.startswith("f"):
        compiled = torch.compile(function, backend="eager")
        for _ in range(3):
            compiled(torch.ones(3))
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--functions", type=int, nargs="+", default=[100, 400])
    arguments = parser.parse_args()
    print(f"{'sites':>6} {'reading':>8} " + " ".join(f"{name:>9}" for name in FORMATS))
    for number in arguments.functions:
        with tempfile.TemporaryDirectory() as folder:
            measure(Path(folder), number)


def measure(folder: Path, number: int) -> None:
    """Prints one row of the table."""
    (folder / "functions.py").write_text(source(number), encoding="utf-8")
    (folder / "program.py").write_text(RUN, encoding="utf-8")
    run(folder, "-m", "breakscan", "explain", "--save", "recording", "program.py")
    reading = best(folder, "-c", READ, "recording")
    times = [
        best(folder, "-m", "breakscan", "report", "recording", "--format", name, "-o", "report.out") for name in FORMATS
    ]
    print(f"{3 * number:>6} {reading:>7.2f}s " + " ".join(f"{seconds:>8.2f}s" for seconds in times), flush=True)


def source(number: int) -> str:
    """So many functions, each with three break sites."""
    lines = []
    for index in range(number):
        lines += [f"def f{index}(x):", "    x = x * x.sum().item()", "    print('', end='')", "    x = x + 1"]
        lines += ["    print('', end='')", "    return x * 2", ""]
    return "\n".join(lines)


def best(folder: Path, *command: str) -> float:
    """CPU seconds of the command, the best of three."""
    return min(run(folder, *command) for _ in range(3))


def run(folder: Path, *command: str) -> float:
    """CPU seconds of the command.  Raises CalledProcessError where it fails."""
    before = getrusage(RUSAGE_CHILDREN)
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    subprocess.run([sys.executable, *command], cwd=folder, env=environment, capture_output=True, check=True)
    after = getrusage(RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


if __name__ == "__main__":
    main()
