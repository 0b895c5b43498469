"""Checks that ``breakscan verify`` reports "no faster" for a change that only renames a local variable.

    python benchmarks/unchanged.py [--device cuda] [--only KIND ...] [--output FILE]

Twenty programs: five kinds of models, of two widths, without and with the backward pass.
"""

from __future__ import annotations

import argparse
import difflib
import itertools
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

PROGRAM = Path(__file__).parent / "timed_programs" / "unchanged.py"
KINDS = ("dense", "gates", "attention", "convolution", "broken")
WIDTHS = ("64", "256")
WAYS = ("infer", "train")


def renamed() -> str:
    """The diff that gives a variable another name."""
    before = PROGRAM.read_text().splitlines(keepends=True)
    after = [line.replace("hidden", "inside") for line in before]
    return "".join(difflib.unified_diff(before, after, f"a/{PROGRAM.name}", f"b/{PROGRAM.name}"))


def verdict(program: tuple[str, ...], device: str, folder: Path) -> dict[str, Any]:
    """The report of ``verify`` on the change in this program."""
    patch, report = folder / "renamed.patch", folder / "report.json"
    patch.write_text(renamed())
    report.unlink(missing_ok=True)
    command = ["verify", "--patch", str(patch), "--format", "json", "-o", str(report), PROGRAM.name, *program, device]
    done = subprocess.run(
        [sys.executable, "-m", "breakscan", *command], cwd=PROGRAM.parent, capture_output=True, text=True, check=False
    )
    return json.loads(report.read_text()) if report.exists() else {"error": (done.stderr or done.stdout)[-300:]}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--only", nargs="+", choices=KINDS, default=KINDS)
    parser.add_argument("--output", type=Path, help="where the table is written, too")
    given = parser.parse_args()
    lines = ["| program | verdict | ratio | time |", "| --- | --- | --- | --- |"]
    with tempfile.TemporaryDirectory() as folder:
        for program in itertools.product(given.only, WIDTHS, WAYS):
            began = time.monotonic()
            report = verdict(program, given.device, Path(folder))
            proof = report["proofs"][0] if report.get("proofs") else {}
            ratio = proof.get("ratio")
            cells = [
                " ".join(program),
                proof.get("verdict") or str(report.get("error", report)),
                "{median:.3f} [{low:.3f}, {high:.3f}]".format(**ratio) if ratio else "",
                f"{time.monotonic() - began:.0f} s",
            ]
            lines.append(f"| {' | '.join(cells)} |")
            print(lines[-1], f"load {os.getloadavg()[0]:.1f}", file=sys.stderr, flush=True)
            if given.output is not None:
                given.output.write_text("\n".join(lines) + "\n")
    print("\n".join(lines))


if __name__ == "__main__":
    main()
