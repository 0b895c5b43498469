"""Runs a variant in further processes.

Processes of the same program differ, and a single process does not show by how much. They start from what the first one
has compiled, so that little is compiled again.
"""

from __future__ import annotations

import functools
import statistics
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path

from breakscan.prove.bench.best import pays_after
from breakscan.prove.bench.eager_baseline import EagerBaseline
from breakscan.prove.bench.progress import BenchProgress
from breakscan.prove.bench.result import BenchRow
from breakscan.prove.bench.step_time import Pace, compile_in, pace_of, prepare
from breakscan.prove.worker import timing as measure
from breakscan.prove.worker.devices import Placement
from breakscan.prove.worker.observation import Observation, ObservationKind
from breakscan.prove.worker.progress import MeasuringStep
from breakscan.prove.worker.threads import run_all
from breakscan.prove.worker.timing import PROCESSES, Unsteady
from breakscan.prove.worker.worker import ProgramChange, Worker, WorkerError

LONGEST = 4.0
"""Seconds for which each of the further processes is timed."""
FAR = 1.25
"""How many times as long as eager steps those of a variant take that is slower in any further process, too."""
ONE_PROCESS_KINDS = {
    ObservationKind.ERROR: ObservationKind.ONE_PROCESS,
    ObservationKind.MAKES_OTHER_CALLS: ObservationKind.ONE_PROCESS_OTHER_CALLS,
    ObservationKind.VALUES_NOT_TAKEN: ObservationKind.ONE_PROCESS_OTHER_VALUES,
}


def is_worth_repeating(row: BenchRow) -> bool:
    """Returns whether further processes can show anything else than the first one."""
    return row.ratio is not None and row.ratio.high > 1 / FAR


class _NotComparable(Exception):
    """A process makes other calls than the first one, or has other values."""

    def __init__(self, observation: Observation) -> None:
        super().__init__(observation.kind.value)
        self.observation = observation


def run_again(row: BenchRow, baseline: EagerBaseline, first: Path, say: Callable[[BenchProgress], None]) -> BenchRow:
    """Returns the row with the measurements of all processes.

    ``first`` is the folder of the existing process. If another one fails, that is noted, and the row is not changed.
    """
    assert row.ratio is not None
    assert row.step_seconds is not None
    workers: list[Worker] = []

    def timed(placement: Placement | None, numbers: Sequence[int]) -> list[Pace]:
        found = []
        for number in numbers:
            say(BenchProgress(MeasuringStep.REPEAT, row.label, number, PROCESSES))
            found.append(_pace(row, baseline, first, number, placement, workers))
        return found

    # Those of a device one after another.
    devices = baseline.devices.placements if baseline.devices.together else baseline.devices.placements[:1]
    numbers = range(2, PROCESSES + 1)
    tasks = [functools.partial(timed, one, numbers[at :: len(devices)]) for at, one in enumerate(devices)]
    try:
        found = run_all(tasks, len(tasks), functools.partial(_interrupt, workers))
    except (_NotComparable, WorkerError, Unsteady) as error:
        baseline.note(_failed(row, error))
        return row
    paces = list(chain(*found))
    steps = [row.step_seconds, *(pace.step_seconds for pace in paces)]
    ratios = [row.ratio, *(pace.ratio for pace in paces)]
    row = replace(
        row,
        processes=PROCESSES,
        step_seconds=statistics.median(steps),
        ratio=measure.ratio_of_processes(ratios),
    )
    return replace(row, pays_after_calls=pays_after(row, baseline.same))


def _interrupt(workers: Sequence[Worker]) -> None:
    for worker in workers:
        worker.interrupt()


def _failed(row: BenchRow, error: _NotComparable | WorkerError | Unsteady) -> Observation:
    if isinstance(error, Unsteady):
        return Observation(ObservationKind.ONE_PROCESS_UNSTEADY, names=(row.label,))
    if isinstance(error, _NotComparable):
        return replace(error.observation, kind=ONE_PROCESS_KINDS[error.observation.kind], names=(row.label,))
    return Observation(ObservationKind.ONE_PROCESS, error.first_line, (row.label,))


def _pace(
    row: BenchRow, baseline: EagerBaseline, first: Path, number: int, placement: Placement | None, workers: list[Worker]
) -> Pace:
    change = ProgramChange({}, row.variant.settings)
    folder = first.with_name(f"{first.name}-{number}")
    program = baseline.program.on(placement)
    with Worker(program, change, folder, cache_of=first, server=baseline.server) as worker:
        workers.append(worker)
        if problem := baseline.other_than(worker.ready()) or baseline.not_taken(worker):
            raise _NotComparable(problem)
        compile_in(worker, row.variant)
        prepare(worker)
        pace = pace_of(worker, LONGEST, baseline.same)
    baseline.steps += pace.eager
    return pace
