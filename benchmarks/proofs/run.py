"""Checks if ``breakscan verify --patch --apply`` writes wrong patches, refuses right ones, or calls a no-op faster.

    python benchmarks/proofs/run.py [NAME ...] [--programs FILE] [--python PYTHON] [--keep FOLDER]

A program of ``programs.txt`` begins with ``### name``; ``<<<``, ``---`` and ``>>>`` enclose what the patch replaces and
what it writes.  A *wrong* patch computes something else where the program can get to, or leaves other state: it must
not be written, and something must be said against it.  What a *noted* one changes must be named.  A *right* one must
not be rejected, and one that does nothing (*noop*) must not be accepted, which would mean faster.  Prints a line for
each program, then the counts; the exit status is 1 if any is not as it should be.
"""

from __future__ import annotations

import argparse
import difflib
import json
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
HEAD = "import torch\n\n\n"
NOTED = ("reasons", "unseen", "varied")


def texts(body: str) -> tuple[str, str]:
    """The program as it is, and with the patch."""
    before, after = (re.sub(r"<<<\n(.*?)---\n(.*?)>>>\n", part, body, flags=re.S) for part in (r"\1", r"\2"))
    return HEAD + before, HEAD + after


def report_on(python: str, folder: Path, before: str, after: str, *options: str) -> dict[str, Any] | str:
    """The report of ``verify`` on the change of ``prog.py`` in a folder, or why there is none."""
    (folder / "prog.py").write_text(before)
    lines = difflib.unified_diff(before.splitlines(True), after.splitlines(True), "a/prog.py", "b/prog.py")
    (folder / "p.patch").write_text("".join(lines))
    command = [python, "-m", "breakscan", "verify", "--patch", "p.patch", *options]
    command += ["--format", "json", "--output", "proofs.json", "prog.py"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=folder, check=False)
    try:
        report: dict[str, Any] = json.loads((folder / "proofs.json").read_text())
    except (OSError, ValueError):
        return f"no report (exit status {done.returncode}): {done.stderr.strip()[-300:]}"
    return report


def proved(python: str, name: str, before: str, after: str, keep: Path | None) -> tuple[bool, str]:
    """Return True if the verdict is as it should be, and the verdict in words."""
    with tempfile.TemporaryDirectory() as folder:
        report = report_on(python, Path(folder), before, after, "--apply")
        if isinstance(report, str):
            return False, report
        if keep is not None:
            (keep / f"{name}.json").write_text(json.dumps(report, indent=1))
        return judged(name.partition("_")[0], report, Path(folder, "prog.py").read_text() != before)


def judged(kind: str, found: dict[str, Any], written: bool) -> tuple[bool, str]:
    """The same for a report."""
    proof = found["proofs"][-1]
    said = [f"prints {proof['printed'][1]!r}, not {proof['printed'][0]!r}"] if proof.get("printed") else []
    notes = [one["says"] if isinstance(one, dict) else one for key in NOTED for one in proof.get(key) or ()]
    said = [*notes, *said]
    words = f"{proof['verdict']}{', held back' if proof['held_back'] else ''}{', written' if written else ''}"
    good = {
        "wrong": not written and (proof["verdict"] in ("rejected", "not-tried") or bool(notes)),
        "noted": bool(said),
        "right": proof["verdict"] not in ("rejected", "not-tried"),
        "noop": proof["verdict"] == "no-faster",
    }[kind]
    return good, f"{words}: {str(said)[:400]}" if said else words


def main() -> int:
    """Runs the programs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--programs", type=Path, default=HERE / "programs.txt")
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--keep", type=Path, help="write the reports into this folder")
    given = parser.parse_args()
    counts: dict[str, list[bool]] = {}
    for part in given.programs.read_text().split("### ")[1:]:
        name, _, body = part.partition("\n")
        if given.names and not any(one in name for one in given.names):
            continue
        began = time.monotonic()
        good, words = proved(given.python, name, *texts(body), given.keep)
        counts.setdefault(name.partition("_")[0], []).append(good)
        print(f"{'    ' if good else 'BAD '}{name} ({time.monotonic() - began:.0f} s): {words}", flush=True)
    for kind, results in counts.items():
        print(f"{kind}: {sum(results)} of {len(results)} as they should be")
    return not all(all(results) for results in counts.values())


if __name__ == "__main__":
    sys.exit(main())
