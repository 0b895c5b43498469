"""Compares the cost of breaks on several ranks in ``breakscan explain`` with the time that their removal saves.

For DDP, FSDP2 and tensor parallelism, ``rank_programs/train.py`` runs under torchrun as it is, without its breaks, and
under ``explain``.  The cost of all breaks a pass, of rank 0, should be near the difference between the first two; one
pass in which rank 1 compiles alone should be distinguished, and not count.

    python benchmarks/rank_costs.py --ranks 2 --reports FOLDER
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

PROGRAM = Path(__file__).parent / "rank_programs" / "train.py"
STEPS_TIMED = 60
"""Of the program on GPUs."""
LIMIT = 110
KINDS = ("ddp", "fsdp2", "tensor")


def torchrun(ranks: int, *arguments: str) -> list[str]:
    return ["-m", "torch.distributed.run", "--nproc-per-node", str(ranks), str(PROGRAM), *arguments]


def step_ms(ranks: int, *arguments: str) -> float:
    """The median step of rank 0, in milliseconds."""
    command = [sys.executable, *torchrun(ranks, *arguments)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT)
    lines = [line for line in done.stdout.splitlines() if line.startswith('{"kind"')]
    if not lines:
        raise SystemExit(f"{' '.join(arguments)} failed:\n{done.stderr[-3000:]}")
    return float(json.loads(lines[-1])["step_ms"])


def explained(ranks: int, kind: str, folder: Path) -> dict[str, Any]:
    """The report of the program, whose text is written to the folder."""
    recording = folder / f"{kind}.recording"
    command = [sys.executable, "-m", "breakscan", "explain", "--save", str(recording), *torchrun(ranks, kind)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT)
    (folder / f"{kind}.txt").write_text(done.stdout + done.stderr, encoding="utf-8")
    report = [sys.executable, "-m", "breakscan", "report", str(recording), "--format", "json"]
    return dict(json.loads(subprocess.run(report, capture_output=True, text=True, check=True).stdout))


def pass_seconds(price: dict[str, Any]) -> float:
    """The cost of a pass, as in reports."""
    if price["waits"] and price["device_seconds"] is not None:
        return float(min(price["device_seconds"], price["host_seconds"]))
    return float(price["host_seconds"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--reports", type=Path, required=True, help="where the texts of the reports go")
    parser.add_argument("kinds", nargs="*", default=KINDS)
    arguments = parser.parse_args()
    arguments.reports.mkdir(parents=True, exist_ok=True)
    for kind in arguments.kinds:
        broken, unbroken = step_ms(arguments.ranks, kind), step_ms(arguments.ranks, kind, "--unbroken")
        data = explained(arguments.ranks, kind, arguments.reports)
        (arguments.reports / f"{kind}.json").write_text(json.dumps(data, indent=1), encoding="utf-8")
        prices = [site["price"] for site in data["breaks"] if site["price"]]
        host = sum(price["host_seconds"] * price["passes"] for price in prices) / STEPS_TIMED
        priced = sum(pass_seconds(price) * price["passes"] for price in prices) / STEPS_TIMED
        longest = [price["longest"] for price in prices if price["longest"]]
        print(
            f"{kind}: {broken:.2f} ms a step, {unbroken:.2f} ms without breaks, {broken - unbroken:.2f} ms saved;"
            f" explain: {1e3 * priced:.2f} ms a step, {1e3 * host:.2f} ms of the host's time; stands out: {longest}",
            flush=True,
        )


if __name__ == "__main__":
    main()
