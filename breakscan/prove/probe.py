"""Results of further processes of the unchanged program: what its later calls have, its results in varied calls, and
the code that all these run.

Varied calls can end a process, and on a GPU they can make it unusable: so it is none of those that are timed.
"""

from __future__ import annotations

import ast
import contextlib
import linecache
import os
import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from breakscan.fix.support.difference import EXCEPTIONS, Effect, effects_of
from breakscan.prove.call_result import CallResult, load_results
from breakscan.prove.candidate import UNCHANGED, Candidate
from breakscan.prove.changed_code import (
    UnseenCode,
    UnseenKind,
    replaced_tests,
    set_elsewhere,
    statement_around,
    unrun,
)
from breakscan.prove.commands import CommandHandler
from breakscan.prove.equal import NOTED, Change, Expected, Part, ResultDifference, has_information
from breakscan.prove.observation import Observation, ObservationKind, other_calls
from breakscan.prove.original import Original
from breakscan.prove.overlay import span_of
from breakscan.prove.proof import VariedDifference
from breakscan.prove.protocol import RanCode, TestOutcome, Variation, VariedCall
from breakscan.prove.varied_calls import VariedCalls
from breakscan.prove.worker import Worker, WorkerError
from breakscan.source.module import SourceProblem, decode_source, read_source
from breakscan.source.paths import display_path

_EFFECTS: Mapping[Part | Change, Effect] = {
    Part.GRADIENT: Effect.GRADIENTS,
    Part.STATE: Effect.STATE,
    Part.RANDOM: Effect.RANDOM,
    Change.DTYPE: Effect.DTYPES,
    Change.SHAPE: Effect.SHAPES,
    Change.ELEMENT: Effect.VALUES,
    Change.ERROR: Effect.VALUES,
    Change.TIE: Effect.VALUES,
    Change.NUMBER: Effect.TYPES,
    Change.ALIAS: Effect.STORAGE,
    Change.STRIDES: Effect.STRIDES,
    Change.MISSING: Effect.TYPES,
    Change.NEW: Effect.TYPES,
}


def is_stated(difference: ResultDifference, effects: Collection[Effect]) -> bool:
    """Return True if one of the effects of a change is this difference."""
    part, change = difference.part, difference.change
    if change is Change.TEXT and part is Part.OUTPUT:
        # The text of a tensor is empty.
        return (Effect.VALUES if difference.was and difference.now else Effect.TYPES) in effects
    if part is Part.EXCEPTION:
        return not EXCEPTIONS.isdisjoint(effects)
    return (_EFFECTS.get(part) or _EFFECTS.get(change)) in effects


LONGEST = 10.0
"""Seconds that the varied calls of a process may take together."""

VariedResults = dict[VariedCall, tuple[CallResult, Mapping[str, RanCode]]]
"""The result of each call that ended in time, and the code that it ran."""


def run_varied(worker: Worker, calls: Iterable[VariedCall]) -> tuple[VariedResults, str]:
    """Runs varied calls, kind by kind: a process that ends takes the others of a kind along. The process cannot be
    relied on afterwards. Also returns why it ended, if it did.
    """
    found: VariedResults = {}
    until = time.monotonic() + LONGEST
    groups: dict[Variation, list[VariedCall]] = {}
    for call in calls:
        groups.setdefault(call.kind, []).append(call)
    path = str(worker.folder / "varied.pt")
    for group in groups.values():
        try:
            run = worker.ask(VariedCalls.run, path, tuple(group), max(0.0, until - time.monotonic()))
        except WorkerError as error:
            return found, error.first_line
        found |= zip(run.ended, zip(load_results(path), run.ran, strict=True), strict=True)
    return found, ""


def varied_difference(
    expected: Expected, other: CallResult, effects: Collection[Effect] = ()
) -> ResultDifference | None:
    """The first difference of an eager result from another one, if possible one that the ``effects`` do not state.
    After the same exception, nothing else counts.
    """
    error = expected.results[0].error
    if error is not None and error == other.error:
        return None
    found = [each for each in expected.differences([other], eager=True) if each.change not in NOTED]
    return next((each for each in found if not is_stated(each, effects)), next(iter(found), None))


def is_raised(result: CallResult, files: Collection[str]) -> bool:
    """Return True if one of these files itself raises the exception of a result: another one shows nothing but that the
    call cannot be made."""
    path, line = result.raised_at[-1] if result.raised_at else ("", 0)
    text = linecache.getline(path, line).strip()
    return os.path.realpath(path) in files and text.startswith(("raise", "assert"))


def _shows(result: CallResult) -> bool:
    """Return True if other code would hardly do the same: not where all is zero, infinite or NaN."""
    return result.error is not None or any(has_information(value) for value in result.tensors() if value.numel())


class Probe:
    """Starts the processes, and ends them again. ``files`` are those that changes replace, ``expected`` has the results
    of the captured calls.

    ``problem`` says what it could not show. An outcome that was not recorded counts as not seen.
    """

    def __init__(self, original: Original, files: Sequence[str], expected: Expected) -> None:
        self._expected = expected
        self.problem: Observation | None = None
        self._names = [one.name for one in original.about.callables]
        self._ran: Mapping[str, RanCode] = {}
        self._varied: VariedResults = {}
        texts = {path: (text, text) for path in files if (text := _text(path)) is not None}
        self._later = str(original.first.folder / "later.pt")
        try:
            with original.workers.start(UNCHANGED, looks_later=True) as worker:
                worker.ask(CommandHandler.save_later, self._later)
            with original.workers.start(Candidate("", texts=texts), records_outcomes=True) as worker:
                self._ask(original, worker, {os.path.realpath(path): text for path, (text, _) in texts.items()})
        except WorkerError as error:
            self.problem = Observation(ObservationKind.NOT_PROBED, error.first_line)

    def _ask(self, original: Original, worker: Worker, texts: Mapping[str, str]) -> None:
        about = worker.ready()
        other, problems = other_calls(about, original.about), original.values.hand_over(worker)
        if other or problems:
            self.problem = Observation(ObservationKind.NOT_PROBED, calls=other, details=tuple(problems))
            return
        in_calls = worker.ask(VariedCalls.captured)
        self._ran = {path: in_calls[path] + about.run.ran[path] for path in in_calls}
        worker.ask(VariedCalls.take_later, self._later)
        names = sorted(set().union(*map(set_elsewhere, texts.values())))
        found, _ = run_varied(worker, worker.ask(VariedCalls.plan, tuple(names)))
        # What the program does not survive is no test.
        survived = [call for call, (result, _) in found.items() if result.error is None or is_raised(result, texts)]
        again, _ = run_varied(worker, survived)
        for call in survived:
            expected = self._expected.of_other_call(found[call][0])
            difference = varied_difference(expected, again[call][0]) if call in again else None
            if difference is not None:
                self.problem = Observation(ObservationKind.VARIED_UNREPEATABLE, details=(difference,))
            elif call in again:
                self._varied[call] = found[call]

    def vary(
        self, candidate: Candidate, worker: Worker, ran: Mapping[str, RanCode]
    ) -> tuple[list[VariedDifference], list[UnseenCode]]:
        """Runs the varied calls in the process of a changed program, which cannot be relied on afterwards. ``ran`` is
        the code of it that ran until now. Returns the differences, and what no call ran.
        """
        effects = effects_of(candidate.differences)
        worker.ask(VariedCalls.take_later, self._later)
        changed, stopped = run_varied(worker, self._varied)
        found: list[VariedDifference] = []
        for call, (result, _) in self._varied.items():
            name = self._names[call.callable]
            if call not in changed:
                if stopped and not any(one.error for one in found):
                    found.append(VariedDifference(call, name, error=stopped))
                continue
            difference = varied_difference(self._expected.of_other_call(result), changed[call][0], effects)
            if difference is not None:
                found.append(VariedDifference(call, name, difference, is_stated=is_stated(difference, effects)))
        return found, list(self._unseen(candidate, [ran, *(code for _, code in changed.values())]))

    def _unseen(self, candidate: Candidate, ran: Sequence[Mapping[str, RanCode]]) -> Iterator[UnseenCode]:
        """The code of a change that no call ran, and the outcomes of replaced tests that none had."""
        ran_before = [self._ran, *(code for result, code in self._varied.values() if _shows(result))]
        for path, (before, after) in candidate.texts.items():
            name, lines = display_path(path, os.getcwd()), candidate.lines[path]
            old, new = (sum((one[path] for one in each if path in one), RanCode()) for each in (ran_before, ran))
            had = set(old.outcomes)
            hidden: set[int] = set()
            for test in replaced_tests(before, after, lines):
                missing = tuple(one for one in (True, False) if TestOutcome(span_of(test), one) not in had)
                if missing:
                    code = " ".join((ast.get_source_segment(before, test) or ast.unparse(test)).split())
                    hidden.update(statement_around(before, test))
                    yield UnseenCode(UnseenKind.OUTCOME, name, test.lineno, code, missing)
            kept = {origin + 1 for origin, is_kept in zip(lines.origins, lines.kept, strict=True) if is_kept}
            replaced = set(range(1, before.count("\n") + 2)) - kept - hidden
            yield from unrun(UnseenKind.REPLACED, name, before, after, replaced, old)
            yield from unrun(UnseenKind.NEW, name, after, before, lines.changed_lines(), new)


def _text(path: str) -> str | None:
    """The text of a file; None if it cannot be read."""
    with contextlib.suppress(SourceProblem):
        return decode_source(read_source(Path(path), path), path)
    return None
