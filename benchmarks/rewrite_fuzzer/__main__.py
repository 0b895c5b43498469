"""``python -m benchmarks.rewrite_fuzzer --programs 3000 --seed 0 -j 2``: what differs, by rewrite, and small programs.

A program that differs as no edit states is made small and printed as a case for ``tests/fix/rewrites/cases/``.
"""

from __future__ import annotations

import argparse
import os
import time
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.rewrite_fuzzer.programs import draw

if TYPE_CHECKING:
    from benchmarks.rewrite_fuzzer.comparing import Comparison
    from benchmarks.rewrite_fuzzer.shrinking import Shrunk

SECONDS = 60
"""The limit for one program, in CPU time."""


@dataclass
class Report:
    """What became of one program."""

    number: int
    text: str
    found: Comparison | None = None
    problem: str = ""
    cpu: float = 0.0
    """The seconds of CPU time that it took."""


@dataclass
class Summary:
    """What became of all programs. ``fired`` counts programs by rewrite, ``stated`` and ``wrong`` those that differ."""

    rewritten: list[Comparison] = field(default_factory=list)
    fired: Counter[str] = field(default_factory=Counter)
    stated: Counter[str] = field(default_factory=Counter)
    wrong: list[Report] = field(default_factory=list)
    problems: Counter[str] = field(default_factory=Counter)
    cpu: float = 0.0


def examine(number: int, seed: int, unsafe: bool, only: str | None) -> Report:
    """Rewrites a program and runs both sides."""
    import logging

    import torch

    from benchmarks.rewrite_fuzzer.comparing import compare, time_limit

    # A `torch.cond` whose sides do not fit logs a traceback for each pair of inputs.
    torch._logging.set_logs(all=logging.CRITICAL)
    start = time.process_time()
    program = draw(number, seed)
    report = Report(number, program.text)
    try:
        with time_limit(SECONDS):
            report.found = compare(report.text, unsafe=unsafe, only=only or (program.only if unsafe else None))
    except KeyboardInterrupt:
        report.problem = f"took more than {SECONDS} s"
    except Exception as error:
        report.problem = repr(error)
    report.cpu = time.process_time() - start
    return report


def shrunk(report: Report, unsafe: bool) -> Shrunk:
    """The program of a report that has faults, as small as it can be."""
    from benchmarks.rewrite_fuzzer.shrinking import shrink_fault

    assert report.found is not None
    return shrink_fault(report.text, report.found, unsafe=unsafe)


def summarized(reports: Sequence[Report]) -> Summary:
    """Counts the reports by rewrite."""
    summary = Summary()
    for one in reports:
        summary.cpu += one.cpu
        if one.problem:
            summary.problems[one.problem] += 1
        if one.found is None or not one.found.after:
            continue
        summary.rewritten.append(one.found)
        summary.fired.update(one.found.rewrites)
        if one.found.faults:
            summary.wrong.append(one)
        elif one.found.differs:
            summary.stated.update(one.found.rewrites)
    return summary


def chosen(wrong: Sequence[Report], most: int) -> list[Report]:
    """The reports that are shrunk: at most so many for the same rewrites and the same sort of fault."""
    from benchmarks.rewrite_fuzzer.shrinking import sort_of_fault

    seen: Counter[tuple[str, ...]] = Counter()
    found = []
    for one in wrong:
        assert one.found is not None
        key = *one.found.rewrites, sort_of_fault(one.found.faults[0])
        seen[key] += 1
        if seen[key] <= most:
            found.append(one)
    return found


def print_table(summary: Summary) -> None:
    """One line for each rewrite that there is."""
    from breakscan.fix.registry import rewrite_ids

    wrong = Counter(rewrite for one in summary.wrong if one.found for rewrite in one.found.rewrites)
    print("| rewrite | programs | differ as stated | differ otherwise |\n| --- | --- | --- | --- |")
    for rewrite in sorted(rewrite_ids(), key=lambda one: (-summary.fired[one], one)):
        print(f"| {rewrite} | {summary.fired[rewrite]} | {summary.stated[rewrite]} | {wrong[rewrite]} |", flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.rewrite_fuzzer")
    parser.add_argument("--programs", type=int, default=300)
    parser.add_argument("--first", type=int, default=0, help="number of the first program")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--unsafe", action="store_true", help="apply unsafe rewrites as well")
    parser.add_argument("--rewrite", metavar="ID", help="apply only this rewrite")
    parser.add_argument(
        "--show", type=int, default=1, help="programs that are shrunk for the same rewrites and sort of difference"
    )
    parser.add_argument("--cases", type=Path, metavar="DIR", help="append the shrunk programs to DIR/<rewrite>.md")
    parser.add_argument("-j", type=int, default=os.cpu_count() or 1)
    options = parser.parse_args()
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    start = time.monotonic()
    numbers = range(options.first, options.first + options.programs)
    run = partial(examine, seed=options.seed, unsafe=options.unsafe, only=options.rewrite)
    with ProcessPoolExecutor(options.j) as pool:
        summary = summarized(list(pool.map(run, numbers, chunksize=10)))
        print(f"{len(numbers)} programs, {len(summary.rewritten)} rewritten, ", end="")
        print(f"{sum(one.differs for one in summary.rewritten)} of them behave differently, ", end="")
        print(f"{len(summary.wrong)} as no edit states ({time.monotonic() - start:.0f} s, {summary.cpu:.0f} s CPU)\n")
        print_table(summary)
        for problem, count in summary.problems.most_common(10):
            print(f"not examined: {count} × {problem}", flush=True)
        small = chosen(summary.wrong, options.show)
        results = list(pool.map(partial(shrunk, unsafe=options.unsafe), small))
    if results:
        _write(small, results, options)
    return 1 if summary.wrong else 0


def _write(reports: Sequence[Report], results: Sequence[Shrunk], options: argparse.Namespace) -> None:
    """Prints the cases, each once, and appends them to files where that is asked for."""
    from benchmarks.rewrite_fuzzer.cases import case, write_case

    seen = set()
    for report, one in zip(reports, results, strict=True):
        rewrite = one.rewrite or "+".join(one.found.rewrites)
        if (rewrite, one.text) in seen:
            continue
        seen.add((rewrite, one.text))
        text = case(one, f"program {report.number} of seed {options.seed}")
        print(f"\n# {rewrite}; states {list(one.found.stated)}\n\n{text}")
        if options.cases:
            print(f"-> {write_case(options.cases, rewrite, text)}")


if __name__ == "__main__":
    raise SystemExit(main())
