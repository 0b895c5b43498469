"""Looks for files that crash, hang or slow down ``breakscan check``.

    python benchmarks/robustness.py [PART ...] [--python EXE ...] [--site FOLDER ...] [--corpus FOLDER]
                                    [--mutants N] [--seed N] [--args "..."] [--json FILE] [--keep FOLDER]

The parts, all by default:
  stdlib   the standard library, with ``test``, of this Python and of each --python; unchanged, and again with an
           ``import torch`` at the end of every file, so that none is skipped as unrelated to torch
  site     each --site: folders of installed packages
  mutants  --mutants programs, cut out of the files of --corpus (a folder of PyTorch code, by default the installed
           torch) and mutated

A crash is: an exit status other than 0, 1 and 2, or one that does not match the report; a traceback on stderr; no JSON;
an error entry that blames breakscan; a hang; a file that is missing in the result; a finding at a position that its
file does not have.  Files are also checked one by one in a warm process: files that take longer than half a CPU second
and run below 200 lines per CPU second are reported.  The exit status is 1 if a crash or such a file was found.
"""

from __future__ import annotations

import argparse
import ast
import hashlib
import importlib.util
import json
import os
import resource
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import Any

import robustness_mutants as mutation
from robustness_runs import FileTime, Outcome, Runner, count_lines

PARTS = ("stdlib", "site", "mutants")
BATCH = 500
SHOWN_ERRORS = 12
SHOWN_TIMES = 3


@dataclass
class Bench:
    """The options, and the results so far."""

    runner: Runner
    jobs: int
    times: bool
    keep: Path | None
    rows: list[dict[str, Any]] = field(default_factory=list)
    faults: int = 0
    slow: int = 0

    def report(self, name: str, outcome: Outcome, times: Sequence[FileTime] = (), **more: object) -> None:
        """Prints a row and keeps it."""
        rate = outcome.lines / outcome.cpu if outcome.cpu and outcome.lines else 0
        speed = f"{outcome.lines:9,} lines  {rate:7,.0f} lines/CPU-s" if rate else " " * 36
        used = f"{outcome.cpu:6.1f} s CPU  {outcome.rss / 2**20:6,.0f} MB"
        given = (
            f"{outcome.findings:6,} findings  {sum(outcome.errors.values()):6,} errors  {len(outcome.faults):3} crashes"
        )
        print(f"{name[:58]:58} {outcome.files:6,} files  {speed}  {used}  {given}")
        for key, value in more.items():
            print(f"    {key.replace('_', ' ')}: {value}")
        for kind, count in outcome.errors.most_common(SHOWN_ERRORS):
            print(f"    {count:6,} × {kind}")
        slowest = sorted(times, key=lambda one: one.seconds, reverse=True)
        slow = [one for one in slowest if one.slow]
        for one in slowest[:SHOWN_TIMES]:
            print(f"    {one.seconds:6.2f} s {one.rate:9,.0f} lines/CPU-s  {one.path}")
        for one in slow:
            print(f"    SLOW  {one.seconds:.2f} s for {one.lines:,} lines  {self.kept(one.path)}")
        for fault in outcome.faults:
            print(f"    CRASH {fault}")
        sys.stdout.flush()
        self.faults += len(outcome.faults)
        self.slow += len(slow)
        row = {"name": name, **vars(outcome), **more, "slowest": [asdict(one) for one in slowest[:20]]}
        self.rows.append({**row, "slow": [asdict(one) for one in slow]})

    def kept(self, path: str) -> str:
        """The copy of a file that will be deleted; the file itself without --keep."""
        if self.keep is None:
            return path
        self.keep.mkdir(parents=True, exist_ok=True)
        copy = self.keep / f"{hashlib.sha1(os.fsencode(path)).hexdigest()[:6]}-{Path(path).name[-60:]}"
        shutil.copyfile(path, copy)
        return str(copy)

    def timed(self, files: Sequence[Path], outcome: Outcome) -> list[FileTime]:
        """The times of the files one by one, where they are asked for."""
        if not self.times:
            return []
        times, faults = self.runner.times(files, self.jobs)
        outcome.faults += faults
        return times


def check_folder(bench: Bench, name: str, folder: Path, **more: object) -> None:
    """One run over a folder, and its files one by one."""
    with tempfile.TemporaryDirectory() as elsewhere:
        outcome = bench.runner.check([folder], Path(elsewhere))
    files = [path for path in sorted(folder.rglob("*.py")) if path.is_file()]
    outcome.lines = sum(map(count_lines, files))
    bench.report(name, outcome, bench.timed(files, outcome), **more)


def stdlib(bench: Bench, interpreters: Sequence[str]) -> None:
    """The standard library of each interpreter."""
    asking = "import sys, sysconfig; print(sysconfig.get_path('stdlib'), sys.version.split()[0], sep='\\n')"
    for interpreter in dict.fromkeys([sys.executable, *interpreters]):
        done = subprocess.run([interpreter, "-c", asking], capture_output=True, text=True, check=False)
        if done.returncode:
            print(f"{interpreter} does not run, left out: {done.stderr.strip()[-200:]}")
            continue
        folder, version = done.stdout.split("\n")[:2]
        with tempfile.TemporaryDirectory() as work:
            for copy, ending in (Path(work, "as_it_is"), b""), (Path(work, "as_torch"), b"\nimport torch\n"):
                for path in sorted(Path(folder).rglob("*.py")):
                    inside = path.relative_to(folder)
                    if path.is_file() and "site-packages" not in inside.parts:
                        target = copy / inside
                        target.parent.mkdir(parents=True, exist_ok=True)
                        target.write_bytes(path.read_bytes() + ending)
                        bench_name = f"standard library of {version}{' with import torch' if ending else ''}"
                check_folder(bench, bench_name, copy)
                shutil.rmtree(copy)


def site(bench: Bench, folders: Sequence[Path]) -> None:
    """Folders of installed packages."""
    for folder in folders:
        packages = sorted(path.name for path in folder.iterdir() if (path / "__init__.py").is_file())
        check_folder(bench, f"packages of {folder}", folder, packages=len(packages))


def mutants(bench: Bench, folder: Path, count: int, seed: int) -> None:
    """Mutated programs, in batches."""
    corpus = mutation.Corpus(folder)
    programs = mutation.mutants(corpus, seed, count)
    total, times, parsed, number = Outcome(), list[FileTime](), 0, 0
    while batch := list(islice(programs, BATCH)):
        with tempfile.TemporaryDirectory() as work:
            files = [Path(work, f"m{number + one:05}.py") for one in range(len(batch))]
            for path, text in zip(files, batch, strict=True):
                path.write_bytes(text.encode("utf-8", "surrogatepass"))
            parsed += sum(map(parses, batch))
            number += len(batch)
            outcome = bench.runner.check(["."], Path(work), expected=len(files))
            outcome.lines = sum(map(count_lines, files))
            batch_times = bench.timed(files, outcome)
            keep_faulty(bench, outcome, files)
            times += [replace(one, path=bench.kept(one.path)) if one.slow else one for one in batch_times]
            total.add(outcome)
    share = round(parsed / max(number, 1), 3)
    bench.report(f"mutants of {len(corpus.files):,} files", total, times, seed=seed, share_that_parses=share)


def keep_faulty(bench: Bench, outcome: Outcome, files: Sequence[Path]) -> None:
    """Copies the files that a crash names before they go."""
    for path in files:
        if bench.keep and any(path.name in fault for fault in outcome.faults):
            bench.kept(str(path))


def parses(text: str) -> bool:
    """True if this Python can parse a program."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True


def default_corpus() -> Path | None:
    """The folder of the installed torch, which is not imported."""
    spec = importlib.util.find_spec("torch")
    return Path(spec.origin).parent if spec and spec.origin else None


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"of {', '.join(PARTS)}")
    parser.add_argument("--python", nargs="+", default=[], metavar="EXE")
    parser.add_argument("--site", nargs="+", default=[], type=Path, metavar="FOLDER")
    parser.add_argument("--corpus", type=Path, metavar="FOLDER")
    parser.add_argument("--mutants", type=int, default=20_000, metavar="N")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--args", default="--regions all --confidence possible", help="for breakscan check")
    parser.add_argument("--no-times", action="store_true", help="do not check files one by one")
    parser.add_argument("--timeout", type=float, default=900, help="seconds until a run counts as a hang")
    parser.add_argument("--file-timeout", type=float, default=60, help="CPU seconds until a single file does")
    parser.add_argument("--memory", type=float, default=8, metavar="GB", help="the most that a process may take")
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="keep copies of the mutants that crash or are slow")
    parser.add_argument("--json", type=Path, metavar="FILE")
    options = parser.parse_args()
    if unknown := set(options.parts) - set(PARTS):
        parser.error(f"no such part: {', '.join(sorted(unknown))}")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("terminated"))  # so that no check is left running
    limit = int(options.memory * 2**30)
    resource.setrlimit(resource.RLIMIT_AS, (limit, resource.getrlimit(resource.RLIMIT_AS)[1]))
    runner = Runner(shlex.split(options.args), options.timeout, options.file_timeout)
    bench = Bench(runner, os.cpu_count() or 1, not options.no_times, options.keep)
    parts = options.parts or PARTS
    corpus = options.corpus or default_corpus()
    print(f"Python {sys.version.split()[0]}, {os.cpu_count()} cores, breakscan check {options.args}", flush=True)
    started = time.perf_counter()
    if "stdlib" in parts:
        stdlib(bench, options.python)
    if "site" in parts:
        site(bench, options.site)
    if "mutants" in parts and corpus is None:
        print("mutants are left out: torch is not installed, name a --corpus")
    elif "mutants" in parts and corpus is not None:
        mutants(bench, corpus, options.mutants, options.seed)
    files = sum(row["files"] for row in bench.rows)
    rss = max((row["rss"] for row in bench.rows), default=0)
    errors: Counter[str] = sum((row["errors"] for row in bench.rows), Counter())
    print(
        f"{files:,} files in {time.perf_counter() - started:,.0f} s: {bench.faults} crashes, {bench.slow} slow files, "
        f"{sum(errors.values()):,} error entries of {len(errors)} kinds, peak {rss / 2**20:,.0f} MB a process"
    )
    if options.json:
        options.json.write_text(json.dumps(bench.rows, indent=1) + "\n", encoding="utf-8")
    return 1 if bench.faults or bench.slow else 0


if __name__ == "__main__":
    sys.exit(main())
