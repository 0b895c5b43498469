"""Runs a way in further processes: those of one program differ, and one tells nothing of that.

They start from what the first one has compiled, so that little is compiled again.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from breakscan.bench.best import pays_after
from breakscan.bench.eager_baseline import EagerBaseline
from breakscan.bench.result import BenchRow
from breakscan.bench.step_time import Pace, pace_of
from breakscan.worker import timing as measure
from breakscan.worker.timing import PROCESSES, Unsteady
from breakscan.worker.worker import ProgramChange, Worker, WorkerError

LONGEST = 4.0
"""Seconds that each of the others is timed."""


def run_again(row: BenchRow, baseline: EagerBaseline, first: Path, say: Callable[[str], None]) -> BenchRow:
    """The row with what all processes have shown.  ``first`` is the folder of the one that there was.  Where another
    one fails, that is noted, and the row stays as it is."""
    assert row.ratio is not None
    assert row.step_seconds is not None
    assert baseline.same is not None
    paces = []
    for number in range(2, PROCESSES + 1):
        say(f"process {number} of {PROCESSES}")
        try:
            paces.append(_pace(row, baseline, first, number))
        except (WorkerError, Unsteady) as error:
            why = error.first_line if isinstance(error, WorkerError) else "it is compiled again while it is timed"
            baseline.note(f"{row.label} was timed in one process alone, as another one failed: {why}")
            return row
    steps = [row.step_seconds, *(pace.step_seconds for pace in paces)]
    ratios = [row.ratio, *(pace.ratio for pace in paces)]
    row = replace(
        row,
        processes=PROCESSES,
        step_seconds=statistics.median(steps),
        ratio=measure.ratio_of_processes(ratios),
    )
    return replace(row, pays_after_calls=pays_after(row, baseline.same))


def _pace(row: BenchRow, baseline: EagerBaseline, first: Path, number: int) -> Pace:
    change = ProgramChange({}, row.variant.settings)
    folder = first.with_name(f"{first.name}-{number}")
    with Worker(baseline.program, change, folder, cache_of=first) as worker:
        if problem := baseline.other_than(worker.ready()):
            raise WorkerError(problem)
        if problems := baseline.hand_over(worker):
            raise WorkerError(problems[0])
        if row.variant.options is not None:
            worker.ask("compile", how=dict(row.variant.options))
        pace = pace_of(worker, LONGEST)
    baseline.steps += pace.eager
    return pace
