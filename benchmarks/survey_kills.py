"""Kills surveys at random moments, and looks whether anything is lost, doubled or left running.

    python benchmarks/survey_kills.py [--surveys N] [--kills N] [--units N] [--seed N]

Each survey is of stand-in units, is killed three times at moments that the seed decides (the survey with SIGKILL,
SIGINT or SIGTERM, or the process of a unit with SIGKILL), and then goes on to its end.  A fault is: a process that
still runs five seconds after, a unit without a result or with two, a result that is not "ok" where no process of a
unit was killed, or a line of progress for a result that an earlier run had already announced.  Needs Linux.  The exit
status is 1 if a fault was found.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import random
import re
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from survey_stand_in import manifest, stand_in

PATIENCE = 5.0
_NAME = re.compile(r"^\[\d+ of \d+\] (unit \d+) \(.*: (\w+) (\w+), ")


def processes(folder: Path) -> dict[int, str]:
    """What works in a folder or runs its Python: process → command line."""
    found = {}
    for name in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError):
            words = Path("/proc", name, "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            if os.readlink(f"/proc/{name}/cwd") == str(folder) and int(name) != os.getpid():
                found[int(name)] = words
    return found


def killed(folder: Path, command: list[str], choose: random.Random) -> tuple[str, list[str]]:
    """What was killed, and what the survey had said."""
    with open(folder / "said", "w+", encoding="utf-8") as said:
        process = subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL, stderr=said)
        time.sleep(choose.uniform(0.1, 4.0))
        what = choose.choice(["SIGKILL", "SIGKILL", "SIGINT", "SIGTERM", "unit"])
        if what == "unit":
            units = [one for one, words in processes(folder).items() if "breakscan.survey.run_unit" in words]
            if units:
                os.kill(choose.choice(units), signal.SIGKILL)
                time.sleep(choose.uniform(0.0, 1.0))
            process.send_signal(signal.SIGKILL)
            what = "unit, then SIGKILL" if units else "SIGKILL"
        else:
            process.send_signal(getattr(signal, what))
        process.wait(60)
        said.seek(0)
        return what, said.read().splitlines()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--surveys", type=int, default=10)
    parser.add_argument("--kills", type=int, default=3)
    parser.add_argument("--units", type=int, default=30)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    faults = 0
    kills: Counter[str] = Counter()
    for number in range(options.surveys):
        choose = random.Random(f"{options.seed} {number}")
        with tempfile.TemporaryDirectory() as made:
            folder = Path(made).resolve()
            manifest(folder, options.units, stand_in(folder, seconds=0.2))
            command = [sys.executable, "-m", "breakscan", "survey", "run", "survey.toml", "-j", "2"]
            announced: Counter[tuple[str, str]] = Counter()
            crashes = 0
            for _ in range(options.kills):
                what, said = killed(folder, command, choose)
                kills[what] += 1
                crashes += what.startswith("unit")
                announced.update((match[1], match[2]) for line in said if (match := _NAME.match(line)))
                until = time.monotonic() + PATIENCE
                while time.monotonic() < until and processes(folder):
                    time.sleep(0.05)
                if left := processes(folder):
                    faults += 1
                    print(f"survey {number}: after {what}, these run on: {left}")
            done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300)
            announced.update((match[1], match[2]) for line in done.stderr.splitlines() if (match := _NAME.match(line)))
            with sqlite3.connect(folder / "survey.db") as db:
                results = db.execute("SELECT key, status FROM results").fetchall()
            statuses = Counter(status for _, status in results)
            problems = [
                f"exit status {done.returncode}: {done.stderr[-300:]}" if done.returncode else "",
                f"{len(results)} results of {options.units} units" if len(results) != options.units else "",
                f"{statuses}" if statuses["ok"] < options.units - crashes else "",
                f"announced twice: {announced}" if any(count > 1 for count in announced.values()) else "",
            ]
            for problem in filter(None, problems):
                faults += 1
                print(f"survey {number}: {problem}")
    print(
        f"{options.surveys} surveys of {options.units} units, {sum(kills.values())} kills: {dict(kills)}: "
        f"{faults} faults"
    )
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()
