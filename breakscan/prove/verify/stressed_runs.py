"""The results of a process with other inputs than the program's own, and how those of another process differ."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

from breakscan.fix.support.difference import EXCEPTIONS, Effect
from breakscan.prove.verify.stated import is_stated
from breakscan.prove.worker.call_result import CallResult, load_results
from breakscan.prove.worker.compare import Strictness, differences, has_information
from breakscan.prove.worker.difference import ResultDifference
from breakscan.prove.worker.protocol import ExpressionSpan, RunStressed, SeenOutcomes, Stress, StressedCall
from breakscan.prove.worker.worker import Worker, WorkerError

LONGEST = 60.0
"""Seconds that the calls of a process with other inputs may take together."""

Outcomes = Mapping[str, Mapping[ExpressionSpan, frozenset[bool]]]
"""The outcomes of tested expressions, by the real path of the file."""


@dataclass(slots=True)
class StressedRuns:
    """``results`` are those of calls that ended in time. ``outcomes`` are those of tests in each of these calls, where
    they were recorded; ``stopped`` says why no more could be run.
    """

    results: dict[StressedCall, CallResult] = field(default_factory=dict)
    outcomes: dict[StressedCall, Outcomes] = field(default_factory=dict)
    stopped: str | None = None

    def add(self, worker: Worker, stress: Stress, compiled: bool, seconds: float) -> None:
        """Runs the first call of each callable with other inputs. The process cannot be relied on afterwards."""
        path = str(worker.folder / f"stressed-{stress.value}.pt")
        try:
            run = worker.ask(RunStressed(path, stress, compiled, max(0.0, seconds)))
        except WorkerError as error:
            self.stopped = error.first_line
            return
        self.stopped = run.stopped
        self.results |= zip(run.ended, load_results(path), strict=True)
        self.outcomes |= zip(run.ended, map(outcomes_of, run.outcomes), strict=True)

    def without_unrepeated(self, again: StressedRuns) -> ResultDifference | None:
        """Drops the calls that do otherwise when they are repeated. Returns the first difference."""
        first = None
        for call in list(self.results):
            other = again.results.get(call)
            difference = stressed_difference(self.results[call], other) if other is not None else None
            if other is None or difference is not None:
                del self.results[call]
                first = first or difference
        return first


def run_stressed(worker: Worker, stresses: Iterable[Stress], compiled: bool = False) -> StressedRuns:
    """Runs the first call of each callable with each kind of other inputs, until the process fails."""
    found = StressedRuns()
    until = time.monotonic() + LONGEST
    for stress in stresses:
        if found.stopped is None:
            found.add(worker, stress, compiled, until - time.monotonic())
    return found


def run_stressed_twice(worker: Worker) -> tuple[StressedRuns, ResultDifference | None]:
    """Runs the calls with all other inputs. Returns what repeats itself, and the first difference of what does not."""
    found, again = StressedRuns(), StressedRuns()
    until = time.monotonic() + 2 * LONGEST
    for stress in Stress:
        for runs in (found, again):
            if found.stopped is None:
                runs.add(worker, stress, False, until - time.monotonic())
                found.stopped = runs.stopped
    return found, found.without_unrepeated(again)


def outcomes_of(seen: Mapping[str, Collection[SeenOutcomes]]) -> Outcomes:
    """The recorded outcomes of each tested expression."""
    return {
        path: {
            one.span: frozenset(outcome for outcome, was in ((True, one.true), (False, one.false)) if was)
            for one in spans
        }
        for path, spans in seen.items()
    }


def stressed_difference(
    one: CallResult, other: CallResult, effects: Collection[Effect] = ()
) -> ResultDifference | None:
    """How one eager result differs from another first; differences that the ``effects`` do not state come before those
    that they do. After the same exception, nothing else counts.
    """
    if one.error is not None and one.error == other.error:
        return None
    found = differences([one], [other], None, Strictness.EAGER.but(types=Effect.TYPES not in effects))
    return next((each for each in found if not is_stated(each, effects)), next(iter(found), None))


def agrees(
    one: CallResult, eager: CallResult, compiled: CallResult, effects: Collection[Effect], draws_random: bool
) -> bool:
    """Whether a changed program did the same as the unchanged one, eager and compiled.

    If the unchanged program raises, so must the changed one, with the same message, unless it states another exception.
    An output that is only zero, infinite or NaN shows nothing.
    """
    if one.error is not None:
        is_same = all((one.error, one.error_text) == (run.error, run.error_text) for run in (eager, compiled))
        return is_same or not EXCEPTIONS.isdisjoint(effects)
    if draws_random or eager.error is not None or compiled.error is not None:
        return False
    values = [*one.outputs.values(), *one.changed.values()]
    if not values or not all(has_information(value) for value in values if value.numel()):
        return False
    how = Strictness.COMPILED.but(random=False, types=Effect.TYPES not in effects)
    return stressed_difference(one, eager, effects) is None and not differences([one], [compiled], None, how)
