"""``python -m benchmarks.driven_edits PACKAGE DRIVER [--unsafe]``: what the edits of a package change when it runs.

PACKAGE is the folder of an unpacked package.  DRIVER is a script that imports J and K from a module ``common``, which
this benchmark provides: ``J(name, build, with_gradients)`` adds a call, and ``build()`` gives a callable and its
arguments, with the keyword arguments last as ``K(...)``.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from benchmarks.driven_edits.run_calls import Why
from benchmarks.driven_edits.sides import CannotLoadError, Result, compared, make_sides


def row(name: str, mode: str, result: Result) -> str:
    """A line of the table."""
    assumed = [one for one in result.differences if one.assumed]
    stated = len(result.differences) - len(result.faults)
    numbers = (
        result.files,
        result.edits,
        len(result.reached),
        result.calls,
        result.outcomes,
        result.returned,
        stated,
        len(assumed),
        len(result.faults),
        result.unsteady,
    )
    return f"| {name} | {mode} | {' | '.join(map(str, numbers))} |"


def not_run(result: Result) -> Iterator[str]:
    """A line for each reason why calls have no outcome, with the first ones."""
    for why in Why:
        labels = [label for reason, labels in result.not_run.items() if reason.why is why for label in labels]
        if labels:
            yield f"{len(labels)} outcomes of {len({name for name, _ in labels})} calls: {why.value}"
    for reason, labels in result.not_run.items():
        if reason.detail:
            name, variant = labels[0]
            yield f"  {name}, {variant}: {reason.why.value}: {reason.detail[-600:]}"


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.driven_edits")
    parser.add_argument("package", type=Path)
    parser.add_argument("driver", type=Path)
    parser.add_argument("--unsafe", action="store_true", help="apply unsafe edits as well")
    parser.add_argument("--path", type=Path, action="append", default=[], help="a folder with what the package needs")
    parser.add_argument("--before", action="append", default=[], metavar="MODULE", help="import it before the driver")
    parser.add_argument("--seconds", type=float, default=60, help="CPU time for the calls of one side")
    parser.add_argument("--jobs", type=int, default=1, help="processes that look for the edits")
    parser.add_argument("--assumed", action="store_true", help="show the differences that only an assumption states")
    parser.add_argument("--unreached", action="store_true", help="name the edits that no call reaches")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        sides = make_sides(
            options.package.absolute(),
            Path(folder).resolve(),
            options.driver.absolute(),
            unsafe=options.unsafe,
            jobs=options.jobs,
            paths=[one.absolute() for one in options.path],
            before=tuple(options.before),
            seconds=options.seconds,
        )
        try:
            result = compared(sides)
        except CannotLoadError as error:
            print(f"The unchanged package does not run:\n{error}", file=sys.stderr)
            return 2
    print(row(options.package.name, "unsafe" if options.unsafe else "safe", result), flush=True)
    for line in not_run(result):
        print(line, flush=True)
    for place in result.unreached if options.unreached else ():
        print(f"not reached: {place}")
    for one in sorted(result.differences, key=lambda one: one.stated):
        if one.stated and not (one.assumed and options.assumed):
            continue
        print(f"\n{one.label}, {'assumed' if one.assumed else 'not stated'}, reaches {', '.join(one.edits)}")
        for kind, (old, new) in one.kinds.items():
            print(f"  {kind}: {str(old)[:200]} -> {str(new)[:200]}")
    return 1 if result.faults else 0


if __name__ == "__main__":
    raise SystemExit(main())
