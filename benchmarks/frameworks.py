"""Compares ``breakscan explain`` with what torch itself does, for programs of real frameworks.

    python -m venv frameworks
    frameworks/bin/pip install -e . torch accelerate diffusers lightning peft transformers trl
    python benchmarks/frameworks.py --python frameworks/bin/python [PROGRAM ...]

Each program of ``framework_programs/`` runs twice: as it is, with ``TORCH_LOGS=graph_breaks,recompiles``, and
``torch._dynamo.utils.counters`` written when it ends; and under ``breakscan explain``.  Prints a row for each program:
what torch reported, and the same facts of the report where they differ.  Both runs share the compiler's caches.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

PROGRAMS = Path(__file__).parent / "framework_programs"
RANKS = {"titan_style": 2}
"""The programs that run under torchrun, with the number of ranks."""
SECONDS = 900
WRITE_COUNTERS = """import atexit, json, os, sys


def write():
    utils = sys.modules.get("torch._dynamo.utils")
    if utils is not None:
        with open(f"{os.environ['COUNTERS']}/{os.getpid()}.json", "w") as file:
            json.dump({name: dict(counts) for name, counts in utils.counters.items()}, file, default=str)


atexit.register(write)
"""
"""A ``sitecustomize``."""
FACTS = ("graphs", "operations", "breaks", "break lines", "recompiles", "cached graphs")
_BREAK = re.compile(r"Graph break .*?in user code at (\S+):(\d+)")
_RECOMPILE = re.compile(r"\[__recompiles\] Recompiling function ")

Facts = Mapping[str, int]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("only", nargs="*", metavar="PROGRAM")
    parser.add_argument("--python", default=sys.executable, help="the Python that has the frameworks and breakscan")
    options = parser.parse_args()
    print(f"| program | {' | '.join(FACTS)} |\n| --- |{' --- |' * len(FACTS)}")
    for program in sorted(PROGRAMS.glob("*.py")):
        if not options.only or program.stem in options.only:
            with tempfile.TemporaryDirectory() as folder:
                torchs = told_by_torch(options.python, program, Path(folder))
                ours = told_by_report(options.python, program, Path(folder))
            print(f"| {program.stem} | {' | '.join(cell(torchs[fact], ours[fact]) for fact in FACTS)} |", flush=True)


def cell(torchs: int, ours: int) -> str:
    return str(torchs) if torchs == ours else f"{torchs}, breakscan: {ours}"


def told_by_torch(python: str, program: Path, folder: Path) -> Facts:
    """The logs and the counters of torch; of several ranks, those of one."""
    site, counters = folder / "site", folder / "counters"
    for made in (site, counters):
        made.mkdir()
    (site / "sitecustomize.py").write_text(WRITE_COUNTERS, encoding="utf-8")
    settings = {"PYTHONPATH": str(site), "COUNTERS": str(counters), "TORCH_LOGS": "graph_breaks,recompiles"}
    log = run(python, program, folder, (), settings)
    counts = [json.loads(path.read_text(encoding="utf-8")) for path in counters.iterdir()]
    compiled = [one for one in counts if one.get("stats")]
    ranks = RANKS.get(program.stem, 1)
    assert len(compiled) in (0, ranks), [sorted(one) for one in counts]
    one: Mapping[str, Mapping[str, int]] = compiled[0] if compiled else {}
    breaks = Counter(_BREAK.findall(log))
    return {
        "graphs": one.get("stats", {}).get("unique_graphs", 0),
        "operations": one.get("stats", {}).get("calls_captured", 0),
        "breaks": breaks.total() // ranks,
        "break lines": len(breaks),
        "recompiles": len(_RECOMPILE.findall(log)) // ranks,
        "cached graphs": one.get("inductor", {}).get("fxgraph_cache_hit", 0),
    }


def told_by_report(python: str, program: Path, folder: Path) -> Facts:
    output = folder / "report.json"
    run(python, program, folder, ("-m", "breakscan", "explain", "--format", "json", "--output", str(output)), {})
    report = json.loads(output.read_text(encoding="utf-8"))
    caches = [use for compiled in report["compiles"] for use in compiled["caches"]]
    return {
        "graphs": report["summary"]["graphs"],
        "operations": report["summary"]["ops"],
        "breaks": report["summary"]["break_events"],
        "break lines": len({(one["site"]["path"], one["site"]["line"]) for one in report["breaks"]}),
        "recompiles": report["summary"]["recompiles"],
        "cached graphs": sum(use["cache"] == "fx_graph" and use["outcome"] == "hit" for use in caches),
    }


def run(python: str, program: Path, folder: Path, under: Sequence[str], settings: Mapping[str, str]) -> str:
    """Runs a program, and returns its standard error."""
    ranks = RANKS.get(program.stem)
    torchrun = ["-m", "torch.distributed.run", "--nproc-per-node", str(ranks)] if ranks else []
    inherited = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "TORCH_LOGS")}
    done = subprocess.run(
        [python, *torchrun, *under, str(program)],
        cwd=folder,
        env={**inherited, "CUDA_VISIBLE_DEVICES": "", "HF_HUB_OFFLINE": "1", **settings},
        capture_output=True,
        text=True,
        timeout=SECONDS,
    )
    return done.stderr


if __name__ == "__main__":
    main()
