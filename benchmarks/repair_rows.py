"""Measures what ``breakscan fix`` does to whole models: breaks before and after, and whether their outputs stay equal.

    python benchmarks/repair_rows.py --rows FILE --package DIR [--python EXE] [--only ROW ...] [--keep DIR]

FILE defines ``ROWS``: name → a function that returns a model and the keyword arguments of one call.  DIR is the
package that holds the models (transformers, say): it is copied, and the copy is rewritten.  All rows run in one
process, recorded by ``explain``: each model in eager mode and compiled, with the graphs that Dynamo creates for it.
Then ``breakscan fix --unsafe --write --regions all`` rewrites the files in which models broke, and the rows run again,
until nothing is left to rewrite.  The outputs of the last run are compared with those of the first (same seed).
Breaks are graphs minus one, as the compiler counts them.  The times are those of this process and of all that it
starts.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

MOST_ROUNDS = 4

RUN = """
import importlib.util, sys
import torch
import torch._dynamo
from torch.utils._pytree import tree_leaves

rows_file, out, *names = sys.argv[1:]
spec = importlib.util.spec_from_file_location("rows", rows_file)
rows = importlib.util.module_from_spec(spec)
spec.loader.exec_module(rows)

def tensors(result):
    result = result.to_tuple() if hasattr(result, "to_tuple") else result
    return [leaf.detach().clone() for leaf in tree_leaves(result) if isinstance(leaf, torch.Tensor)]

def run(name):
    torch._dynamo.reset()
    torch.manual_seed(0)
    model, inputs = rows.ROWS[name]()
    graphs = []

    def backend(module, _):
        graphs.append(module)
        return module.forward

    def call(function):
        torch.manual_seed(1)
        with torch.no_grad():
            return tensors(function(**inputs))

    eager = call(model)
    compiled = call(torch.compile(model, backend=backend))
    return {"eager": eager, "compiled": compiled, "graphs": len(graphs)}

torch.save({name: run(name) for name in names or rows.ROWS}, out)
"""


class Rows:
    """The rows, the copy of the package that is rewritten, and how they are run."""

    def __init__(self, options: argparse.Namespace, work: Path) -> None:
        self.python = options.python
        self.rows = options.rows.resolve()
        self.work = work
        self.package = work / "site" / options.package.name
        if not self.package.exists():
            shutil.copytree(options.package, self.package, ignore=shutil.ignore_patterns("__pycache__"))
        self.runner = work / "run.py"
        self.runner.write_text(RUN, encoding="utf-8")
        root = Path(__file__).resolve().parents[1]
        self.env = os.environ | {
            "PYTHONPATH": f"{work / 'site'}{os.pathsep}{root}",
            "OMP_NUM_THREADS": "1",
            "PYTHONWARNINGS": "ignore",
            "TRANSFORMERS_VERBOSITY": "error",
        }

    def command(self, *arguments: str, good: tuple[int, ...] = (0,)) -> str:
        done = subprocess.run([self.python, *arguments], env=self.env, cwd=self.work, capture_output=True, text=True)
        if done.returncode not in good:
            raise RuntimeError(f"{' '.join(arguments[:4])}: {done.returncode}\n{done.stderr[-3000:]}")
        return done.stdout

    def run(self, names: list[str]) -> tuple[Any, list[str], list[str]]:
        """The result of each row, the files of the package in which models broke, and each break in words."""
        import torch

        report, out = self.work / "report.json", self.work / "out.pt"
        explain = ("-m", "breakscan", "explain", "--format", "json", "-o", str(report))
        self.command(*explain, str(self.runner), str(self.rows), str(out), *names, good=(0, 1))
        data = json.loads(report.read_text(encoding="utf-8"))
        breaks = [one for one in data["breaks"] if one.get("site")]
        words = [
            f"{Path(one['site']['path']).name}:{one['site']['line']} {one.get('rule') or ''} {one['reason'][:60]}"
            for one in breaks
        ]
        files = {str((self.work / one["site"]["path"]).resolve()) for one in breaks}
        return torch.load(out), sorted(path for path in files if path.startswith(str(self.package.resolve()))), words

    def fix(self, files: list[str]) -> dict[str, Any]:
        arguments = (
            "fix",
            "--unsafe",
            "--write",
            "--regions",
            "all",
            "--target-torch",
            "2.13",
            "--format",
            "json",
            *files,
        )
        data: dict[str, Any] = json.loads(self.command("-m", "breakscan", *arguments, good=(0, 1, 2)))
        return data


def same(one: list[Any], other: list[Any]) -> str:
    """``equal`` bit by bit, the greatest difference, or what else differs."""
    import torch

    if len(one) != len(other):
        return f"{len(one)} and {len(other)} tensors"
    worst = 0.0
    for a, b in zip(one, other, strict=True):
        if a.shape != b.shape or a.dtype != b.dtype:
            return f"{a.dtype} {tuple(a.shape)} and {b.dtype} {tuple(b.shape)}"
        if not torch.equal(a, b) and a.numel():
            both = a.isnan() & b.isnan() if a.is_floating_point() else torch.zeros_like(a, dtype=torch.bool)
            worst = max(worst, (a.double() - b.double()).masked_fill(both, 0).abs().max().item())
    return "equal" if worst == 0 else f"differ by {worst:.1e}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=Path, required=True)
    parser.add_argument("--package", type=Path, required=True)
    parser.add_argument("--python", default=sys.executable, help="with torch and what the package needs")
    parser.add_argument("--only", nargs="+")
    parser.add_argument("--keep", type=Path, help="work in this folder, and leave it")
    options = parser.parse_args()
    work = (options.keep or Path(tempfile.mkdtemp(prefix="breakscan-rows-"))).resolve()
    work.mkdir(parents=True, exist_ok=True)
    rows = Rows(options, work)
    started = time.monotonic()
    before, files, left = rows.run(options.only or [])
    after = before
    for _ in range(MOST_ROUNDS):
        if not files or not rows.fix(files)["summary"]["changed"]:
            break
        after, files, left = rows.run(options.only or [])
    totals = [0, 0]
    for name, first in before.items():
        last = after[name]
        counts = [first["graphs"] - 1, last["graphs"] - 1]
        totals = [total + count for total, count in zip(totals, counts, strict=True)]
        print(
            f"{name:18} breaks {counts[0]:3} → {counts[1]:3}   eager {same(first['eager'], last['eager']):10}"
            f"   compiled {same(last['eager'], last['compiled'])}"
        )
    for words in left:
        print(f"left: {words}")
    used = os.times()
    cpu = used.user + used.system + used.children_user + used.children_system
    wall = time.monotonic() - started
    print(f"{'all':18} breaks {totals[0]:3} → {totals[1]:3}   in {wall:.0f} s, {cpu:.0f} s of CPU; {work}")


if __name__ == "__main__":
    main()
