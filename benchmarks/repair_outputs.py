"""Tests whether the rewrites of ``breakscan fix`` in a package change what its functions compute.

    python benchmarks/repair_outputs.py --driver FILE --package DIR [--keep DIR] [--list]

FILE defines ``JOBS``, a list of (name, build, with gradients), and ``call(build)`` → (function, arguments, keyword
arguments).  DIR is the folder that holds the package; it is copied, and every file of the copy that has findings is
rewritten with ``fix --unsafe``, all functions counting as compiled.  Each job then runs in eager mode over the original
and over the copy, with the same seeds; its outputs, gradients and exceptions are compared: equal bit by bit, close (as
``torch.testing.assert_close`` defaults), or different.  ``--list`` names the jobs that are not equal.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

RUN = """
import importlib.util, random, sys, warnings
import numpy, torch
from torch.utils._pytree import tree_leaves

warnings.simplefilter("ignore")
driver, out = sys.argv[1:3]
sys.path.insert(0, driver.rpartition("/")[0])
spec = importlib.util.spec_from_file_location("driver", driver)
jobs = importlib.util.module_from_spec(spec)
spec.loader.exec_module(jobs)

def leaves(result):
    found = tree_leaves(result)
    return [one.detach().clone() if isinstance(one, torch.Tensor) else one
            for one in found if isinstance(one, (torch.Tensor, bool, int, float, str))]

def outcome(build, grad):
    try:
        function, args, kwargs = jobs.call(build)
        given = [one for one in tree_leaves((args, kwargs)) if isinstance(one, torch.Tensor)]
        inputs = [one for one in given if one.is_floating_point()]
        if grad:
            for one in inputs:
                one.requires_grad_()
        with torch.set_grad_enabled(grad):
            result = function(*args, **kwargs)
            gradients = []
            outs = [one for one in tree_leaves(result) if isinstance(one, torch.Tensor) and one.requires_grad]
            if outs and inputs:
                gradients = torch.autograd.grad(sum(one.double().sum() for one in outs), inputs, allow_unused=True)
        return "returns", leaves(result), leaves(list(gradients)), leaves([args, kwargs])
    except Exception as error:
        return "raises", type(error).__name__, str(error)[:200], None

found = {}
for name, build, grad in jobs.JOBS:
    random.seed(0); numpy.random.seed(0); torch.manual_seed(0)
    found[name] = outcome(build, grad)
torch.save(found, out)
"""


def run(python: str, site: Path, driver: Path, work: Path) -> dict[str, Any]:
    import torch

    runner, out = work / "run.py", work / "out.pt"
    runner.write_text(RUN, encoding="utf-8")
    env = os.environ | {"PYTHONPATH": str(site), "OMP_NUM_THREADS": "1"}
    subprocess.run([python, str(runner), str(driver), str(out)], env=env, cwd=work, check=True, capture_output=True)
    found: dict[str, Any] = torch.load(out, weights_only=False)
    return found


def compared(one: Any, other: Any) -> str:
    """``equal``, ``close``, or what differs."""
    if one[0] != other[0] or (one[0] == "raises" and one[1] != other[1]):
        words = [f"{found[0]} {found[1:3]}" if found[0] == "raises" else found[0] for found in (one, other)]
        return " → ".join(words)
    if one[0] == "raises":
        return "equal"
    if differs(one, other, rtol=0, atol=0) is None:
        return "equal"
    found = differs(one, other)
    return f"different: {found}" if found else "close"


def differs(one: Any, other: Any, **tolerance: Any) -> str | None:
    """What of two outcomes differs, in words."""
    import torch

    try:
        torch.testing.assert_close(list(other[1:]), list(one[1:]), equal_nan=True, **tolerance)
    except AssertionError as error:
        return " ".join(str(error).split())[:160]
    return None


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--driver", type=Path, required=True)
    parser.add_argument("--package", type=Path, required=True, help="the package's own folder")
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--keep", type=Path)
    parser.add_argument("--list", action="store_true")
    options = parser.parse_args()
    work = (options.keep or Path(tempfile.mkdtemp(prefix="breakscan-outputs-"))).resolve()
    site = work / "site"
    copy = site / options.package.name
    if copy.exists():
        shutil.rmtree(copy)
    shutil.copytree(options.package, copy, ignore=shutil.ignore_patterns("__pycache__"))
    command = [
        "fix",
        "--unsafe",
        "--write",
        "--regions",
        "all",
        "--target-torch",
        "2.13",
        "--format",
        "json",
        copy.name,
    ]
    done = subprocess.run([sys.executable, "-m", "breakscan", *command], cwd=site, capture_output=True, text=True)
    told = json.loads(done.stdout)
    by_rewrite = Counter(
        (one["rewrite"], "unsafe" if one["difference"] else "safe") for file in told["files"] for one in file["applied"]
    )
    print(f"{told['summary']}; {dict(by_rewrite)}", flush=True)
    before = run(options.python, options.package.resolve().parent, options.driver.resolve(), work)
    after = run(options.python, site, options.driver.resolve(), work)
    verdicts = {name: compared(before[name], after[name]) for name in before}
    print(dict(Counter(verdict.partition(":")[0] for verdict in verdicts.values())), work)
    if options.list:
        for name, verdict in verdicts.items():
            if verdict != "equal":
                print(f"  {name}: {verdict}")


if __name__ == "__main__":
    main()
