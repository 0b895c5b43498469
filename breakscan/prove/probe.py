"""What a further process of the unchanged program shows: the outcomes of its tests, and its results with other inputs.

Other inputs can end a process, and on a GPU they can make it unusable: so it is none of those that are timed.
"""

from __future__ import annotations

import ast
import contextlib
import os
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from breakscan.fix.support.difference import EXCEPTIONS, Effect, effects_of
from breakscan.prove.call_result import CallResult, load_results
from breakscan.prove.candidate import Candidate
from breakscan.prove.changed_code import replaced_tests, statement_around
from breakscan.prove.equal import Change, Part, ResultDifference, Strictness, differences, has_information
from breakscan.prove.observation import Observation, ObservationKind, other_calls
from breakscan.prove.original import Original
from breakscan.prove.overlay import span_of
from breakscan.prove.proof import StressDifference, StressedOutcome, UnseenOutcome
from breakscan.prove.protocol import ExpressionSpan, SeenOutcomes, Stress, StressedCall
from breakscan.prove.stress import ProbeRuns
from breakscan.prove.worker import Worker, WorkerError
from breakscan.source.module import SourceProblem, decode_source, read_source
from breakscan.source.paths import display_path

_OF_PARTS: Mapping[Part, Effect] = {
    Part.GRADIENT: Effect.GRADIENTS,
    Part.STATE: Effect.STATE,
    Part.RANDOM: Effect.RANDOM,
}
_OF_OUTPUTS: Mapping[Change, Effect] = {
    Change.DTYPE: Effect.DTYPES,
    Change.SHAPE: Effect.SHAPES,
    Change.ELEMENT: Effect.VALUES,
    Change.ERROR: Effect.VALUES,
    Change.ALIAS: Effect.STORAGE,
    Change.MISSING: Effect.TYPES,
    Change.NEW: Effect.TYPES,
}


def is_stated(difference: ResultDifference, effects: Collection[Effect]) -> bool:
    """Whether one of the effects of a change is this difference."""
    if difference.change is Change.TEXT and difference.part is Part.OUTPUT:
        # The text of a tensor is empty.
        return (Effect.VALUES if difference.was and difference.now else Effect.TYPES) in effects
    if difference.part is Part.EXCEPTION:
        return not EXCEPTIONS.isdisjoint(effects)
    effect = _OF_PARTS.get(difference.part) or _OF_OUTPUTS.get(difference.change)
    return effect in effects


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
            run = worker.ask(ProbeRuns.stressed, path, stress, compiled, max(0.0, seconds))
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


@dataclass(frozen=True, slots=True)
class ReplacedTest:
    """A test that a change replaces. ``path`` is the real path of its file, ``statement`` holds the lines of the
    innermost statement around it, and ``missing`` the outcomes that no captured call had.
    """

    shown: str
    path: str
    code: str
    span: ExpressionSpan
    statement: range
    missing: frozenset[bool]

    @property
    def unseen(self) -> UnseenOutcome | None:
        """What is missing, if anything is."""
        missing = tuple(sorted(self.missing, reverse=True))
        return UnseenOutcome(self.shown, self.span.line, self.code, missing) if missing else None

    def is_shown_by(self, result: CallResult) -> bool:
        """Returns whether the result of a call that had an outcome of the test shows what followed: an exception that
        was raised elsewhere does not.
        """
        return result.error is None or any(
            line in self.statement and os.path.realpath(path) == self.path for path, line in result.raised_at
        )


@dataclass(frozen=True, slots=True)
class Stressed:
    """What calls with other inputs show of a change. ``outcomes`` are those that only these calls had, and ``unseen``
    those that no call had.
    """

    differences: tuple[StressDifference, ...]
    outcomes: tuple[StressedOutcome, ...]
    unseen: tuple[UnseenOutcome, ...]


class Probe:
    """Starts the process, and ends it again. ``files`` are those that changes replace, and ``draws_random`` says
    whether the calls draw random numbers.

    ``problem`` says what it could not show. An outcome that was not recorded counts as not seen.
    """

    def __init__(self, original: Original, files: Sequence[str], draws_random: bool) -> None:
        self.problem: Observation | None = None
        self._names = [one.name for one in original.about.callables]
        self._draws_random = draws_random
        self._outcomes: Outcomes = {}
        self._stressed = StressedRuns()
        texts = {path: (text, text) for path in files if (text := _text(path)) is not None}
        try:
            with original.workers.start(Candidate("", texts=texts), records_outcomes=True) as worker:
                self._ask(original, worker)
        except WorkerError as error:
            self.problem = Observation(ObservationKind.NOT_PROBED, error.first_line)

    def _ask(self, original: Original, worker: Worker) -> None:
        about = worker.ready()
        if other := other_calls(about, original.about):
            self.problem = Observation(ObservationKind.PROBE_MAKES_OTHER_CALLS, calls=other)
            return
        if problems := original.values.hand_over(worker):
            self.problem = Observation(ObservationKind.PROBE_HAS_OTHER_VALUES, details=tuple(problems))
            return
        self._outcomes = outcomes_of(worker.ask(ProbeRuns.outcomes))
        self._stressed, unrepeated = run_stressed_twice(worker)
        if self._stressed.stopped is not None:
            self.problem = Observation(ObservationKind.NOT_STRESSED, self._stressed.stopped)
        elif unrepeated is not None:
            self.problem = Observation(ObservationKind.STRESS_UNREPEATABLE, details=(unrepeated,))

    def unseen(self, candidate: Candidate) -> tuple[UnseenOutcome, ...]:
        """Returns the outcomes that replaced tests had in no captured call."""
        found = (test.unseen for test in self.replaced(candidate))
        return tuple(one for one in found if one is not None)

    def stress(self, candidate: Candidate, worker: Worker) -> Stressed:
        """Runs the calls of a changed program with the same other inputs: eager, and compiled where they have outcomes
        that no captured call had. The process cannot be relied on afterwards.
        """
        effects = effects_of(candidate.differences)
        changed = run_stressed(worker, dict.fromkeys(call.stress for call in self._stressed.results))
        found = []
        for call, result in self._stressed.results.items():
            if call in changed.results:
                difference = stressed_difference(result, changed.results[call], effects)
                if difference is not None:
                    name = self._names[call.callable]
                    stated = is_stated(difference, effects)
                    found.append(StressDifference(call.stress, name, difference, is_stated=stated))
        missing = [call for call in self._stressed.results if call not in changed.results]
        if missing and changed.stopped is not None:
            found.append(StressDifference(missing[0].stress, self._names[missing[0].callable], error=changed.stopped))
        outcomes, unseen = self._only_stressed(self.replaced(candidate), worker, changed, effects)
        return Stressed(tuple(found), tuple(outcomes), tuple(unseen))

    def replaced(self, candidate: Candidate) -> list[ReplacedTest]:
        """Returns the tests that a change replaces, with the outcomes that they had in no captured call."""
        found = []
        for path, (before, after) in candidate.texts.items():
            real = os.path.realpath(path)
            outcomes = self._outcomes.get(real, {})
            for test in replaced_tests(before, after, candidate.lines[path]):
                span, statement = span_of(test), statement_around(before, test)
                code = " ".join((ast.get_source_segment(before, test) or ast.unparse(test)).split())
                missing = frozenset({True, False}) - outcomes.get(span, frozenset())
                found.append(ReplacedTest(display_path(path, os.getcwd()), real, code, span, statement, missing))
        return found

    def _only_stressed(
        self, tests: Sequence[ReplacedTest], worker: Worker, changed: StressedRuns, effects: Collection[Effect]
    ) -> tuple[list[StressedOutcome], list[UnseenOutcome]]:
        """Returns the outcomes that calls with other inputs show, and those that no call shows.

        An outcome is not shown if a call that had it differs, even if the change states the difference.
        """
        differing = {
            call
            for call, result in changed.results.items()
            if stressed_difference(self._stressed.results[call], result, effects) is not None
            and (self._stressed.results[call].error is None or EXCEPTIONS.isdisjoint(effects))
        }
        left = list(tests)
        doubted = [frozenset().union(*(self._had(test, call) for call in differing)) for test in tests]
        found = []
        for stress in dict.fromkeys(call.stress for call in self._stressed.results):
            calls = [call for call in changed.results if call.stress is stress]
            if not any(self._shows(test, call) for test in left for call in calls):
                continue
            compiled = run_stressed(worker, [stress], compiled=True)
            for call in calls:
                if call not in compiled.results or not agrees(
                    self._stressed.results[call],
                    changed.results[call],
                    compiled.results[call],
                    effects,
                    self._draws_random,
                ):
                    continue
                for number, test in enumerate(left):
                    had = self._shows(test, call) - doubted[number]
                    left[number] = replace(test, missing=test.missing - had)
                    found += [
                        StressedOutcome(test.shown, test.span.line, test.code, outcome, stress)
                        for outcome in sorted(had)
                    ]
        return found, [unseen for test in left if (unseen := test.unseen) is not None]

    def _shows(self, test: ReplacedTest, call: StressedCall) -> frozenset[bool]:
        """Returns the missing outcomes of a test that a call with other inputs had, if it tells what followed."""
        had = self._had(test, call) & test.missing
        return had if test.is_shown_by(self._stressed.results[call]) else frozenset()

    def _had(self, test: ReplacedTest, call: StressedCall) -> frozenset[bool]:
        """Returns the outcomes of a test that a call with other inputs had."""
        return self._stressed.outcomes[call].get(test.path, {}).get(test.span, frozenset())


def _text(path: str) -> str | None:
    """The text of a file; None if it cannot be read."""
    with contextlib.suppress(SourceProblem):
        return decode_source(read_source(Path(path), path), path)
    return None
