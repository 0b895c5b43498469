"""Checks the verdicts of ``breakscan verify`` on programs as people write them, and the caveats that it names.

    python benchmarks/verify_programs.py [NAME ...] [--keep FOLDER] [--seconds N]

The programs are in ``verified_programs/``: state in classes, calls that write in place, generators, data loaders with
workers, two models, optimizers, the Trainer of transformers, sides that are taken late.  ``EXPECTED`` says for each
what is right.  Each program runs in a folder of its own.  Prints a table: the program, what was proved, what no call
showed, and the wall time; the exit status is 1 if a verdict is not the expected one.  A program
whose packages are not installed is left out and named.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

PROGRAMS = Path(__file__).resolve().parent / "verified_programs"


@dataclass(frozen=True)
class Expected:
    """The right result for a program.

    ``equal`` are rewrites that must be proved equal, ``unseen`` the tests of which one outcome must be named as never
    seen, ``declined`` the rules whose findings no rewrite may be offered for.  The program gets ``arguments``, and
    ``given`` on standard input; ``needs`` are the packages that it imports.
    """

    equal: frozenset[str] = frozenset()
    unseen: frozenset[str] = frozenset()
    declined: frozenset[str] = frozenset()
    arguments: tuple[str, ...] = ()
    given: str = ""
    needs: tuple[str, ...] = ()


def _these(*names: str) -> frozenset[str]:
    return frozenset(names)


EXPECTED: Mapping[str, Expected] = {
    "late_side": Expected(equal=_these("where"), unseen=_these("x.abs().amax() > 50.0")),
    "state_of_a_class": Expected(equal=_these("where")),
    "writes_in_place": Expected(equal=_these("where", "assert-async")),
    "generators": Expected(equal=_these("where")),
    "workers_of_a_loader": Expected(equal=_these("where", "assert-async")),
    "two_models": Expected(equal=_these("where")),
    "optimizers": Expected(equal=_these("where")),
    "modes_of_a_model": Expected(equal=_these("where")),
    "accumulated_gradients": Expected(equal=_these("is-compiling-guard")),
    "mixture_of_experts": Expected(equal=_these("dense-experts")),
    "reads_arguments": Expected(equal=_these("where"), arguments=("64",), given="some words\n"),
    "huggingface_trainer": Expected(equal=_these("where"), needs=("transformers", "accelerate")),
}


@dataclass
class Row:
    """The report of ``verify`` for a program; ``wrong`` are the differences from what is expected."""

    name: str
    proofs: list[str] = field(default_factory=list)
    unseen: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    seconds: float = 0.0

    def line(self) -> str:
        """The row of the table."""
        right = "; ".join(self.wrong) or "yes"
        cells = (self.name, "; ".join(self.proofs), "; ".join(self.unseen) or "-", f"{self.seconds:.0f} s", right)
        return f"| {' | '.join(cells)} |"


def judged(name: str, expected: Expected, report_data: Mapping[str, Any]) -> Row:
    """A report of ``verify`` compared with what is expected."""
    row = Row(name)
    alone = [proof for proof in report_data["proofs"] if proof["rewrite"]]
    for proof in alone:
        row.proofs.append(f"{proof['rewrite']}: {proof['verdict']}, {proof['says'].split(';')[0]}")
        row.unseen += [one["says"] for one in proof["unseen"]]
    for rewrite in sorted(expected.equal):
        found = [proof["outputs_equal"] for proof in alone if proof["rewrite"] == rewrite]
        if not found or not all(found):
            row.wrong.append(f"{rewrite} is not proved to be equal")
    named = {one["code"] for proof in alone for one in proof["unseen"]}
    row.wrong += [f"`{test}` is not named as unseen" for test in sorted(expected.unseen - named)]
    declined = " ".join(report_data["declined"])
    row.wrong += [f"{rule} is not declined" for rule in sorted(expected.declined) if f" {rule}: " not in declined]
    return row


def run(name: str, expected: Expected, keep: Path | None, seconds: float) -> Row:
    """Verifies one program in a folder of its own."""
    start = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        program = Path(shutil.copy(PROGRAMS / f"{name}.py", folder))
        command = [sys.executable, "-m", "breakscan", "verify", "--format", "json", "-o", "report.json"]
        try:
            done = subprocess.run(
                [*command, program.name, *expected.arguments],
                cwd=folder,
                input=expected.given,
                capture_output=True,
                text=True,
                timeout=seconds,
            )
            errors = done.stderr
        except subprocess.TimeoutExpired:
            errors = f"not finished after {seconds:.0f} s"
        report = Path(folder, "report.json")
        if report.exists():
            text = report.read_text(encoding="utf-8")
            row = judged(name, expected, json.loads(text))
            if keep:
                (keep / f"{name}.json").write_text(text, encoding="utf-8")
        else:
            row = Row(name, wrong=[errors.strip().splitlines()[-1] if errors.strip() else "no report"])
    row.seconds = time.monotonic() - start
    return row


def wanted(names: list[str]) -> Iterator[tuple[str, Expected]]:
    """The programs to run; those that need what is not installed are named on standard error."""
    for name in names or EXPECTED:
        missing = [one for one in EXPECTED[name].needs if importlib.util.find_spec(one) is None]
        if missing:
            print(f"{name} is left out: {', '.join(missing)} not installed", file=sys.stderr)
        else:
            yield name, EXPECTED[name]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help="only these programs")
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="write the whole reports there")
    parser.add_argument("--seconds", type=float, default=600, help="the most that a program may take")
    options = parser.parse_args()
    if unknown := [name for name in options.names if name not in EXPECTED]:
        parser.error(f"no such program: {', '.join(unknown)}")
    if options.keep:
        options.keep.mkdir(parents=True, exist_ok=True)
    print("| program | proved | not seen | time | as expected |\n| --- | --- | --- | --- | --- |")
    rows = []
    for name, expected in wanted(options.names):
        rows.append(run(name, expected, options.keep, options.seconds))
        print(rows[-1].line(), flush=True)
    return int(any(row.wrong for row in rows))


if __name__ == "__main__":
    sys.exit(main())
