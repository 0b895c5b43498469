"""A survey of as many real units as asked, within a time: transformers' types of models, then models with one break.

    python benchmarks/survey_run.py FOLDER [--units N] [--jobs N] [--seconds N]

Where the time does not suffice, the survey is interrupted as by Ctrl-C.  Prints how many units were done, how they
ended, what the survey's own process took of the CPU, and what a report and the size of the store are then.  FOLDER
gets a copy of the store without the whole reports.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import resource
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ZOO = """
import torch
from torch import nn


class Branchy(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.linear = nn.Linear(4, width)

    def forward(self, x):
        y = self.linear(x)
        if y.sum() > 0:
            y = y + 1
        return y


def names():
    from breakscan.survey.transformers_models import names as types
    of_library = ["transformers/" + name for name in types()]
    return (of_library + [f"branchy/{number}" for number in range(COUNT)])[:COUNT]


def build(name):
    kind, _, rest = name.partition("/")
    if kind == "transformers":
        from breakscan.survey.transformers_models import build as of_library
        return of_library(rest)
    return Branchy(4 + int(rest)), (torch.randn(2, 4),)
"""
MANIFEST = """
backends = ["eager"]
modes = ["eval", "train"]
seconds = 60
memory = "6 GiB"

[[model]]
build = "zoo:build"
names = "zoo:names"
"""
TICKS = os.sysconf("SC_CLK_TCK")


def own_cpu(process: int) -> float:
    """The CPU seconds of a process without those that it started."""
    fields = Path("/proc", str(process), "stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--units", type=int, default=2000)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--seconds", type=float, default=400.0)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as made:
        Path(made, "zoo.py").write_text(f"COUNT = {options.units // 2}\n{ZOO}", encoding="utf-8")
        Path(made, "survey.toml").write_text(MANIFEST, encoding="utf-8")
        survey = [sys.executable, "-m", "breakscan", "survey"]
        started = time.monotonic()
        with open(Path(made, "said"), "w+", encoding="utf-8") as said:
            command = [*survey, "run", "survey.toml", "-j", str(options.jobs)]
            process = subprocess.Popen(command, cwd=made, stdout=subprocess.DEVNULL, stderr=said)
            cpu = 0.0
            while process.poll() is None:
                with contextlib.suppress(OSError, ValueError, IndexError):
                    cpu = own_cpu(process.pid)
                if time.monotonic() - started > options.seconds:
                    process.send_signal(signal.SIGINT)
                    process.wait(60)
                time.sleep(0.5)
            wall = time.monotonic() - started
            said.seek(0)
            lines = said.read().splitlines()
        units = resource.getrusage(resource.RUSAGE_CHILDREN)
        print(f"exit status {process.returncode} after {wall:.1f} s with {options.jobs} units side by side")
        print(f"{len([line for line in lines if line.startswith('[')])} results; the last line: {lines[-1:]}")
        print(f"CPU: {units.ru_utime + units.ru_stime:.0f} s in all, {cpu:.1f} s of them the survey's own process")
        for name in ("terminal", "json"):
            started = time.monotonic()
            with open(Path(made, f"report.{name}"), "wb") as out:
                subprocess.run([*survey, "report", "survey.db", "--format", name], cwd=made, stdout=out, check=True)
            print(f"report as {name}: {time.monotonic() - started:.2f} s")
        print(Path(made, "report.terminal").read_text(encoding="utf-8")[-2500:])
        kept = options.folder / "survey.db"
        size = Path(made, "survey.db").stat().st_size
        shutil.copy(Path(made, "survey.db"), kept)
        with sqlite3.connect(kept) as db:
            count, seconds = db.execute("SELECT count(*), sum(seconds) FROM results").fetchone()
            statuses = dict(db.execute("SELECT status, count(*) FROM results GROUP BY 1"))
            print(f"the store: {count} results, {size:,} bytes; {statuses}")
            print(
                f"stages took {seconds:.0f} s: {seconds / wall / options.jobs:.0%} of the time of {options.jobs} places"
            )
            db.execute("DELETE FROM reports")
        db.close()
        with sqlite3.connect(kept, isolation_level=None) as db:
            db.execute("VACUUM")
        db.close()


if __name__ == "__main__":
    main()
