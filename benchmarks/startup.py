"""The cost of starting breakscan, as CPU seconds and as a multiple of starting Python in the same run.

    python benchmarks/startup.py [--repeat N]

Measures an empty Python, ``--version``, ``check`` of one file of 500 lines without a cache, and loading the table of
torch's functions.  Prints the median of the repeats, which take turns.
"""

from __future__ import annotations

import argparse
import resource
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

METHOD = """
    def f{n}(self, x: torch.Tensor):
        y = x.sin()
        if y.any():
            y = y + {n}
        return self.f{after}(y)
"""
MODEL = "import torch\n\n\nclass Net(torch.nn.Module):\n    def forward(self, x):\n        return self.f0(x)\n"


def commands(file: Path) -> dict[str, list[str]]:
    """The command of each row."""
    breakscan = [sys.executable, "-m", "breakscan"]
    load = "from breakscan.rulebook.torch_facts.table import load_api; load_api('2.13')"
    return {
        "python -c pass": [sys.executable, "-c", "pass"],
        "breakscan --version": [*breakscan, "--version"],
        "breakscan check, 500 lines": [*breakscan, "check", "--no-cache", "--exit-zero", str(file)],
        "table of torch's functions": [sys.executable, "-c", load],
    }


def cpu_seconds(command: list[str]) -> float:
    """User and system seconds of a process.  Raises CalledProcessError if it fails."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, stdout=subprocess.DEVNULL, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeat", type=int, default=7)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "model.py"
        file.write_text(MODEL + "".join(METHOD.format(n=n, after=n + 1) for n in range(82)), encoding="utf-8")
        rows = commands(file)
        seconds: dict[str, list[float]] = {name: [] for name in rows}
        for _ in range(options.repeat):
            for name, command in rows.items():
                seconds[name].append(cpu_seconds(command))
    empty = statistics.median(seconds["python -c pass"])
    for name, values in seconds.items():
        median = statistics.median(values)
        print(f"{name:28} {median:6.3f} s CPU  {median / empty:5.1f}x")


if __name__ == "__main__":
    main()
