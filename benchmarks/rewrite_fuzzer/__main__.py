"""``python -m benchmarks.rewrite_fuzzer --programs 3000 --seed 0 -j 2``: prints what changed, by rewrite and kind."""

from __future__ import annotations

import argparse
import os
import signal
import tempfile
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path

from benchmarks.rewrite_fuzzer.programs import draw

SECONDS = 60


@dataclass
class Report:
    """What became of one program.  ``faults`` are ``(input, kind, before, after)`` that no edit states."""

    number: int
    text: str
    after: str = ""
    rewrites: list[str] = field(default_factory=list)
    stated: list[str] = field(default_factory=list)
    differs: bool = False
    faults: list[tuple[str, str, str, str]] = field(default_factory=list)
    problem: str = ""


def examine(number: int, seed: int, unsafe: bool) -> Report:
    """Rewrites a program and runs both sides."""
    import torch

    from benchmarks.rewrite_fuzzer.effects import allowed, unstated
    from benchmarks.rewrite_fuzzer.outcomes import difference_kinds, outcomes
    from breakscan.config import load_settings
    from breakscan.repair.planner import WantedRewrites, repair_file

    torch.set_num_threads(1)
    program = draw(number, seed)
    report = Report(number, program.text)
    signal.signal(signal.SIGALRM, signal.default_int_handler)
    signal.alarm(SECONDS)
    try:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "program.py"
            path.write_text(program.text, encoding="utf-8")
            settings = replace(load_settings(Path(folder), None, target_torch="2.13", no_cache=True), regions="all")
            repair = repair_file(path, (), settings, WantedRewrites(unsafe, soften=True))
        if not repair.changed:
            return report
        report.after = repair.after
        report.rewrites = sorted({one.rewrite for one in repair.applied})
        report.stated = sorted({one.difference for one in repair.applied if one.difference})
        effects = allowed(difference for one in repair.applied for difference in one.differences)
        before, after = outcomes(program.text, "before"), outcomes(repair.after, "after")
        for label in before:
            kinds = difference_kinds(before[label], after[label])
            report.differs |= bool(kinds)
            for kind, (old, new) in unstated(kinds, effects, catches="except" in program.text).items():
                report.faults.append((label, kind, str(old), str(new)))
    except KeyboardInterrupt:
        report.problem = f"took more than {SECONDS} s"
    except Exception as error:
        report.problem = repr(error)
    finally:
        signal.alarm(0)
    return report


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.rewrite_fuzzer")
    parser.add_argument("--programs", type=int, default=300)
    parser.add_argument("--first", type=int, default=0, help="number of the first program")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--unsafe", action="store_true", help="apply unsafe rewrites as well")
    parser.add_argument("--show", type=int, default=3, help="programs that are printed for each rewrite")
    parser.add_argument("-j", type=int, default=os.cpu_count() or 1)
    options = parser.parse_args()
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    start = time.monotonic()
    numbers = range(options.first, options.first + options.programs)
    with ProcessPoolExecutor(options.j) as pool:
        reports = list(
            pool.map(examine, numbers, [options.seed] * len(numbers), [options.unsafe] * len(numbers), chunksize=10)
        )
    changed = [one for one in reports if one.after]
    wrong = [one for one in changed if one.faults]
    fired = Counter(rewrite for one in changed for rewrite in one.rewrites)
    print(f"{len(reports)} programs, {len(changed)} rewritten, ", end="")
    print(f"{sum(one.differs for one in changed)} of them behave differently, {len(wrong)} as is not stated", end=" ")
    print(f"({time.monotonic() - start:.0f} s)")
    for rewrite, count in fired.most_common():
        bad = [one for one in wrong if rewrite in one.rewrites]
        kinds = Counter(kind for one in bad for kind in {fault[1] for fault in one.faults})
        print(f"  {rewrite}: {count} rewritten, {len(bad)} differ: {dict(kinds.most_common(6))}")
    for problem, count in Counter(one.problem for one in reports if one.problem).most_common(10):
        print(f"  not examined: {count} × {problem}")
    shown: Counter[str] = Counter()
    for one in wrong:
        key = "+".join(one.rewrites)
        shown[key] += 1
        if shown[key] <= options.show:
            print(f"\n# program {one.number}, seed {options.seed}: {key}; states {one.stated}")
            print(one.text.partition("return self.weight * 2\n")[2].strip("\n"))
            print("# ->")
            print(one.after.partition("return self.weight * 2\n")[2].strip("\n"))
            for fault in one.faults[:4]:
                print("#", *(part[:90] for part in fault), sep=" | ")
    return 1 if wrong else 0


if __name__ == "__main__":
    raise SystemExit(main())
