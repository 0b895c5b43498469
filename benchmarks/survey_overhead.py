"""What a survey adds to each unit: beside the bare command, in turns, one unit at a time.

    python benchmarks/survey_overhead.py [--rounds N] [--units N] [--ray]

Units are stand-ins, which answer at once, programs that compile nothing, and programs that compile with the real
Dynamo. A round runs the same commands bare, then as a survey with one place, in a fresh folder; the time of a survey
of one unit is taken off, so that what is left is what each further unit costs.  With --ray, the survey also runs on a
cluster that Ray starts.  Prints medians over the rounds, with the least and the most.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from survey_stand_in import stand_in

PROGRAMS = {
    "stand-in": "",
    "compiles nothing": "print(1)\n",
    "compiles": (
        "import torch\n\n\n@torch.compile(backend='eager')\ndef f(x):\n    if x.sum() > 0:\n        x = x + 1\n"
        "    return x\n\n\nf(torch.ones(3))\n"
    ),
}


def bare(folder: Path, python: str, units: int) -> float:
    """Seconds of the commands that a survey runs, one after the other."""
    started = time.perf_counter()
    for number in range(units):
        command = [python, "-m", "breakscan", "explain", "--format", "json", "--output", str(folder / "bare.json")]
        subprocess.run([*command, "a.py", str(number)], cwd=folder, capture_output=True, check=False)
    return time.perf_counter() - started


def surveyed(folder: Path, python: str, units: int, options: list[str]) -> float:
    """Seconds of a survey of as many units, in a store of its own."""
    programs = "".join(f'[[program]]\nname = "unit {n}"\ncommand = ["a.py", "{n}"]\n' for n in range(units))
    (folder / "survey.toml").write_text(f'pythons = ["{python}"]\n{programs}', encoding="utf-8")
    for left in folder.glob("survey.db*"):
        left.unlink()
    started = time.perf_counter()
    command = [sys.executable, "-m", "breakscan", "survey", "run", "survey.toml", *options]
    subprocess.run(command, cwd=folder, capture_output=True, check=True)
    return time.perf_counter() - started


def words(seconds: list[float]) -> str:
    """A median in milliseconds, with the range."""
    middle, least, most = (1e3 * one for one in (statistics.median(seconds), min(seconds), max(seconds)))
    return f"{middle:.0f} ms [{least:.0f}, {most:.0f}]"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--units", type=int, default=11)
    parser.add_argument("--ray", action="store_true")
    options = parser.parse_args()
    engines = {"local": ["-j", "1"], **({"ray": ["--engine", "ray"]} if options.ray else {})}
    more = options.units - 1
    for name, text in PROGRAMS.items():
        with tempfile.TemporaryDirectory() as made:
            folder = Path(made)
            (folder / "a.py").write_text(text, encoding="utf-8")
            python = str(stand_in(folder)) if name == "stand-in" else sys.executable
            alone: list[float] = []
            costs: dict[str, list[float]] = {engine: [] for engine in engines}
            for _ in range(options.rounds):
                alone.append(bare(folder, python, more) / more)
                for engine, given in engines.items():
                    first = surveyed(folder, python, 1, given)
                    costs[engine].append((surveyed(folder, python, options.units, given) - first) / more)
            for engine, each in costs.items():
                added = [with_ - without for with_, without in zip(each, alone, strict=True)]
                print(f"{name}, {engine}: bare {words(alone)}, survey {words(each)}, added {words(added)}", flush=True)


if __name__ == "__main__":
    main()
