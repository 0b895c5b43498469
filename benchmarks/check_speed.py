"""Measures the speed of ``breakscan check``, of ``ast.parse`` and of similar tools over the same files in the same run.

    python -m venv peers && peers/bin/pip install -r benchmarks/peers.txt
    python benchmarks/check_speed.py --peers peers/bin [FOLDER ...] [--repeat N] [--json FILE] [--base COMMIT]

FOLDER is by default the ``models`` folder of the installed transformers (about 1 million lines).  For each tool, it
prints the median wall and CPU seconds, lines per second, and the ratio of its CPU seconds to those of ``ast.parse``
(one process, the garbage collector off).  A tool that is not installed is skipped and named.  ``--all`` also measures
``--regions all``.  ``--base`` also measures breakscan as it is at a commit, such as the last release, and exits with 1
if the ratio of the working tree is more than a tenth above that.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path


@dataclass(frozen=True)
class Measured:
    """Medians over the repeats, in seconds; ``rss`` is the largest resident set of any process, in bytes."""

    tool: str
    wall: float
    cpu: float
    lines_per_second: float
    lines_per_cpu_second: float
    rss: int
    times_the_cpu_of_parsing: float


ROOT = Path(__file__).parents[1]
BASE = "breakscan at the base"
MOST = 1.1
"""The ratio to ``ast.parse`` may rise by this factor."""

PARSE = """
import ast, gc, pathlib, sys
gc.disable()
for folder in sys.argv[1:]:
    for file in sorted(pathlib.Path(folder).rglob("*.py")):
        ast.parse(file.read_bytes())
"""


def commands(folders: list[str], peers: str | None, everything: bool, base: str | None) -> dict[str, list[str] | None]:
    """The command of each tool, or None where it is not installed."""
    check = [sys.executable, "-m", "breakscan", "check", "--format", "concise", "--exit-zero"]
    older = ["env", f"PYTHONPATH={base}", *check]
    ruff = shutil.which("ruff", path=peers) or shutil.which("ruff", path=str(Path(sys.executable).parent))
    torchfix = shutil.which("torchfix", path=peers)
    mlinter = shutil.which("mlinter", path=peers)
    return {
        "ast.parse": [sys.executable, "-c", PARSE, *folders],
        "breakscan": [*check, *folders],
        **({BASE: [*older, *folders]} if base else {}),
        **({"breakscan --regions all": [*check, "--regions", "all", *folders]} if everything else {}),
        "ruff": ruff and [ruff, "check", "--isolated", "--no-cache", "--quiet", "--exit-zero", *folders],  # type: ignore
        "transformers-mlinter": mlinter and [mlinter, "--no-cache", "--no-progress", *folders],  # type: ignore
        "torchfix": torchfix and [torchfix, "--select", "ALL", *folders],  # type: ignore
    }


def run(command: list[str]) -> tuple[float, float, int]:
    """Wall seconds, CPU seconds of the process and its children, and its largest resident set in bytes."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    start = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, check=False)
    wall = time.perf_counter() - start
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode not in (0, 1):
        print(f"  note: {Path(command[0]).name} ended with {done.returncode}: {done.stderr[-300:]!r}")
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return wall, cpu, after.ru_maxrss * 1024


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="*", type=Path, metavar="FOLDER")
    parser.add_argument("--peers", help="folder of the peers' commands")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--all", action="store_true", help="measure --regions all as well")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--base", metavar="COMMIT", help="measure breakscan as it is there as well")
    options = parser.parse_args()
    folders = [folder.resolve() for folder in options.folders]
    if not folders:
        spec = importlib.util.find_spec("transformers")
        if spec is None or spec.origin is None:
            sys.exit("transformers is not installed: pip install transformers, or name a folder")
        folders = [Path(spec.origin).parent / "models"]
    files = [file for folder in folders for file in folder.rglob("*.py")]
    lines = sum(file.read_bytes().count(b"\n") for file in files)
    print(f"{len(files)} files, {lines:,} lines, {os.cpu_count()} cores, Python {sys.version.split()[0]}")
    rows: list[Measured] = []
    older = tempfile.mkdtemp() if options.base else None
    if older is not None:
        archive = subprocess.check_output(["git", "archive", options.base, "breakscan", "rules"], cwd=ROOT)
        subprocess.run(["tar", "x", "-C", older], input=archive, check=True)
    for tool, command in commands([str(folder) for folder in folders], options.peers, options.all, older).items():
        if not command:
            print(f"{tool:24} not installed")
            continue
        # A tool that needs minutes is run once: its noise does not change the ratio much.
        runs = [run(command)]
        while len(runs) < options.repeat and runs[0][0] < 120:
            runs.append(run(command))
        wall, cpu = (statistics.median(column) for column in ([r[0] for r in runs], [r[1] for r in runs]))
        ratio = cpu / (rows[0].cpu if rows else cpu)
        rows.append(Measured(tool, wall, cpu, lines / wall, lines / cpu, max(r[2] for r in runs), ratio))
        print(
            f"{tool:24} {wall:8.1f} s wall  {cpu:8.1f} s CPU  {lines / wall:9,.0f} lines/s  "
            f"{lines / cpu:9,.0f} lines/CPU-s  {ratio:6.1f}x  (median of {len(runs)})",
            flush=True,
        )
    if options.json:
        options.json.write_text(json.dumps([asdict(row) for row in rows], indent=1) + "\n", encoding="utf-8")
    ratios = {row.tool: row.times_the_cpu_of_parsing for row in rows}
    if older is not None:
        shutil.rmtree(older)
        sys.exit(f"slower than {options.base}" if ratios["breakscan"] > MOST * ratios[BASE] else 0)


if __name__ == "__main__":
    main()
