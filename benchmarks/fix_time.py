"""Measures the CPU time of ``breakscan fix`` beside that of ``breakscan check`` on the same files.

    python benchmarks/fix_time.py FOLDER ... [--repeat N] [--options "--unsafe --soften"]

Both run in one process, without a cache, in turns.  For each folder, it prints the median CPU seconds of each and
their ratio, the number of files, and how many of the findings of ``check`` have an outcome in ``fix``: all must.
A folder is run from inside, so that a package is checked as its author would.
"""

from __future__ import annotations

import argparse
import json
import resource
import shlex
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

OUTCOMES = ("applied", "unsafe", "softening", "regenerated", "declined", "without")
LONGEST = 3600.0
"""Seconds that one run may take."""


def run(arguments: list[str], folder: Path) -> tuple[float, dict]:  # type: ignore[type-arg]
    """CPU seconds of a command of breakscan, and the object that it writes."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    with tempfile.NamedTemporaryFile(suffix=".json") as report:
        command = [sys.executable, "-m", "breakscan", *arguments, "--no-cache", "--jobs", "1", "--format", "json"]
        done = subprocess.run([*command, "-o", report.name, "."], cwd=folder, capture_output=True, timeout=LONGEST)
        if done.returncode not in (0, 1):
            raise SystemExit(f"{folder}: {shlex.join(arguments)}: {done.stderr.decode()[-2000:]}")
        found = json.loads(Path(report.name).read_text(encoding="utf-8"))
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--options", default="", help="further options of fix")
    arguments = parser.parse_args()
    print(f"{'':36}{'files':>6}{'findings':>9}{'check':>8}{'fix':>8}{'ratio':>7}")
    for folder in arguments.folders:
        times: dict[str, list[float]] = {"check": [], "fix": []}
        for _ in range(arguments.repeat):
            seconds, checked = run(["check"], folder)
            times["check"].append(seconds)
            seconds, fixed = run(["fix", *shlex.split(arguments.options)], folder)
            times["fix"].append(seconds)
        findings, outcomes = len(checked["findings"]), sum(fixed["summary"][name] for name in OUTCOMES)
        check, fix = (statistics.median(times[name]) for name in ("check", "fix"))
        name, files = folder.resolve().name, fixed["summary"]["files"]
        print(f"{name:36}{files:6}{findings:9}{check:8.2f}{fix:8.2f}{fix / check:7.1f}", flush=True)
        if findings != outcomes:
            print(f"  {findings} findings, {outcomes} outcomes: some are lost")


if __name__ == "__main__":
    main()
