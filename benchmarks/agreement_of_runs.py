"""Measures how far check and explain agree, by ``breakscan explain --check``, on many public calls of real packages.

    python benchmarks/agreement_of_runs.py --drivers FOLDER [PACKAGE ...] [--limit N] [--list] [--json FILE]

The folder has scripts called PACKAGE_calls.py, which fill the list JOBS of a module common.py next to them, and end
with a call of its main: (name, build, grad), and common.call(build) gives a callable, its arguments, its keywords.
Each call is compiled with the backend ``eager``, in one process, with Dynamo reset before each.  Packages must be
installed.

Per package:
  recall        recorded break sites that check finds, of those in files that were checked
  confirmed     findings in traced code at which the run broke or recompiled
  contradicted  findings, certain or likely, whose line the run compiled without a break
  hidden        findings after a break that made the function run eager
  not-triggered findings that the run did not reach
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

OUTCOMES = ("confirmed", "contradicted", "hidden", "not-triggered")
PROGRAM = """
import contextlib, sys
sys.path.insert(0, {drivers!r})
import torch, common
common.main = lambda *_, **__: None
import {module}
for name, build, grad in common.JOBS[:{limit}]:
    torch._dynamo.reset()
    torch.manual_seed(0)
    with contextlib.suppress(Exception):
        function, given, named = common.call(build)
        with torch.set_grad_enabled(grad):
            torch.compile(function, backend="eager")(*given, **named)
"""


def run(driver: Path, limit: int | None) -> tuple[dict[str, Any], float]:
    """The report of the calls of a driver, and the seconds that the run took."""
    with tempfile.TemporaryDirectory() as folder:
        text = PROGRAM.format(drivers=str(driver.parent.resolve()), module=driver.stem, limit=limit)
        Path(folder, "calls.py").write_text(text, encoding="utf-8")
        command = [sys.executable, "-m", "breakscan", "explain", "--check", "--format", "json", "-o", "report.json"]
        environment = {**os.environ, "TORCH_LOGS": "-all", "CUDA_VISIBLE_DEVICES": ""}
        began = time.perf_counter()
        done = subprocess.run(
            [*command, "calls.py"], cwd=folder, env=environment, capture_output=True, text=True, timeout=3600
        )
        seconds = time.perf_counter() - began
        report = Path(folder, "report.json")
        if done.returncode or not report.exists():
            sys.exit(f"{driver.name} ended with {done.returncode}: {done.stderr[-2000:]}")
        return json.loads(report.read_text(encoding="utf-8")), seconds


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("only", nargs="*", metavar="PACKAGE")
    parser.add_argument("--drivers", type=Path, metavar="FOLDER")
    parser.add_argument("--limit", type=int, help="run only so many calls of a package")
    parser.add_argument("--list", action="store_true", help="list what was missed and contradicted")
    parser.add_argument("--json", type=Path, metavar="FILE")
    options = parser.parse_args()
    drivers = sorted(options.drivers.glob("*_calls.py")) if options.drivers else []
    if not drivers:
        print(f"skipped: no drivers in {options.drivers}" if options.drivers else "skipped: no --drivers folder")
        return 0
    kept = {}
    for driver in drivers:
        package = driver.stem.removesuffix("_calls")
        if options.only and package not in options.only:
            continue
        if importlib.util.find_spec(package) is None:
            print(f"{package:14} skipped: not installed")
            continue
        report, seconds = run(driver, options.limit)
        agreement = report["agreement"]
        checked = set(agreement["files"])
        sites = [b for b in report["breaks"] if b["site"]["path"] in checked and b["origin"] != "framework"]
        missed = [m for m in agreement["missed"] if not m["silenced"]]
        counts = Counter(finding["outcome"] for finding in agreement["findings"])
        told = len(sites) - len(agreement["missed"])
        shown = "  ".join(f"{outcome} {counts[outcome]}" for outcome in OUTCOMES)
        print(f"{package:14} recall {told}/{len(sites)}  {shown}  files {len(checked)}  {seconds:.0f} s", flush=True)
        kept[package] = {"sites": len(sites), "told": told, **{outcome: counts[outcome] for outcome in OUTCOMES}}
        if options.list:
            for miss in missed:
                print(f"  missed        {miss['site']['path']}:{miss['site']['line']} {miss['gb_type']}")
            for finding in agreement["findings"]:
                if finding["outcome"] == "contradicted":
                    where = f"{finding['site']['path']}:{finding['site']['line']}"
                    print(f"  contradicted  {where} {finding['rule']} {finding['confidence']}: {finding['message']}")
    if options.json:
        options.json.write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
