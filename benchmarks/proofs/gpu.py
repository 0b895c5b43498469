"""Proves a right patch, a wrong one and one that changes nothing on steps of real sizes, on a GPU.

    python benchmarks/proofs/gpu.py [NAME[:VARIANT] ...] [--small] [--by-hand] [--tune SECONDS]

In ``gpu.txt``, ``<<<`` and ``>>>`` enclose what a patch replaces; what ``right``, ``wrong`` and ``noop`` write in its
place follows after ``--- right`` and so on.  A right patch must not be rejected, a wrong one must be, and one that
changes nothing must not be faster.  ``--small`` takes tiny sizes, for machines without a GPU; ``--by-hand`` also times
the steps before and after the right patch, each in a process of its own.  ``--tune`` proves nothing: it times the steps
eager, as they are, with what ``tune`` finds in so many seconds, and with the right patch.  Prints a line of JSON for
each patch or program; the exit status is 1 if a verdict is not as it should be.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from run import report_on

VARIANTS = ("right", "wrong", "noop")
HEADER = """\
import torch
import torch.nn as nn
import torch.nn.functional as F

REAL = {real}
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
DTYPE = torch.bfloat16
torch.manual_seed(0)
"""
LOOP = "for _ in range(20):\n    step()\n"
BY_HAND = """
import contextlib, io, statistics, time, torch
names = {"__name__": "__main__"}
exec(compile(open("prog.py").read().replace("range(20)", "range(0)"), "prog.py", "exec"), names)
wait = torch.cuda.synchronize if torch.cuda.is_available() else lambda: None
def seconds():
    wait(); start = time.perf_counter(); names["step"](); wait()
    return time.perf_counter() - start
with contextlib.redirect_stdout(io.StringIO()):
    first = seconds()
    times = [seconds() for _ in range(70)][10:]
print(first, statistics.median(times))
"""


def text(body: str, variant: str, real: bool) -> str:
    """The program of a variant; that without a patch is the ``original``."""

    def chosen(block: re.Match[str]) -> str:
        original, *rest = re.split(r"^--- (\w+)\n", block[1], flags=re.M)
        return {"original": original, **dict(zip(rest[::2], rest[1::2], strict=True))}[variant]

    return HEADER.format(real=real) + re.sub(r"^<<<\n(.*?)^>>>\n", chosen, body, flags=re.S | re.M) + LOOP


def by_hand(folder: Path, program: str) -> tuple[float, float]:
    """Return the seconds of the first step, from empty caches, and of a later one."""
    (folder / "prog.py").write_text(program)
    with tempfile.TemporaryDirectory() as cache:
        environment = {**os.environ, "TORCHINDUCTOR_CACHE_DIR": cache}
        done = subprocess.run(
            [sys.executable, "-c", BY_HAND], cwd=folder, capture_output=True, text=True, env=environment, check=True
        )
    first, later = map(float, done.stdout.split()[-2:])
    return first, later


def proved(folder: Path, before: str, after: str, variant: str) -> dict[str, object]:
    """Return the verdict on a patch, and if it is as it should be."""
    start = time.perf_counter()
    report = report_on(sys.executable, folder, before, after)
    row: dict[str, object] = {"seconds": round(time.perf_counter() - start)}
    if isinstance(report, str):
        return {**row, "good": False, "error": report}
    proof = report["proofs"][-1]
    wanted = {
        "right": ("accepted", "no-faster", "too-noisy"),
        "wrong": ("rejected",),
        "noop": ("no-faster", "too-noisy"),
    }
    row["good"] = proof["verdict"] in wanted[variant]
    return row | {key: proof[key] for key in ("verdict", "reason", "ratio", "held_back") if proof.get(key)}


def tuned(folder: Path, program: str, seconds: int) -> str:
    """The program with the patch that ``tune`` finds."""
    (folder / "prog.py").write_text(program)
    command = [sys.executable, "-m", "breakscan", "tune", "--time", str(seconds), "--apply-unseen", "prog.py"]
    subprocess.run(command, cwd=folder, stdout=subprocess.DEVNULL, check=False)
    return (folder / "prog.py").read_text()


def main() -> int:
    parser = argparse.ArgumentParser(description="Prove patches on steps of real sizes.")
    parser.add_argument("names", nargs="*")
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--by-hand", action="store_true")
    parser.add_argument("--tune", type=int, metavar="SECONDS")
    given = parser.parse_args()
    good = True
    for part in (Path(__file__).parent / "gpu.txt").read_text().split("### ")[1:]:
        name, _, body = part.partition("\n")
        texts = {variant: text(body, variant, not given.small) for variant in ("original", *VARIANTS)}
        if given.tune:
            if given.names and name not in given.names:
                continue
            with tempfile.TemporaryDirectory() as folder:
                ways = {
                    "eager": texts["original"].replace("DTYPE =", 'torch.compiler.set_stance("force_eager")\nDTYPE ='),
                    "as it is": texts["original"],
                    "tuned": tuned(Path(folder), texts["original"], given.tune),
                    "by hand": texts["right"],
                }
                steps = {way: by_hand(Path(folder), program)[1] for way, program in ways.items()}
            print(json.dumps({"program": name, "finds": ways["tuned"] != ways["as it is"], **steps}), flush=True)
            continue
        for variant in VARIANTS:
            if given.names and not {name, f"{name}:{variant}"} & {*given.names}:
                continue
            with tempfile.TemporaryDirectory() as folder:
                row: dict[str, object] = {"program": name, "variant": variant}
                row |= proved(Path(folder), texts["original"], texts[variant], variant)
                if given.by_hand and variant == "right":
                    pair = [by_hand(Path(folder), texts[each]) for each in ("original", variant)]
                    row["by_hand"] = {"first_steps": [one for one, _ in pair], "steps": [one for _, one in pair]}
            good = good and bool(row["good"])
            print(json.dumps(row), flush=True)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
