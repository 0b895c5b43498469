"""A further process of the unchanged program: what its later calls have, its results in varied calls, and the code that
all these run.

Varied calls can end a process, and on a GPU they can make it unusable: so it is none of those that are timed."""

import ast
import contextlib
import os
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import product
from pathlib import Path

from breakscan.fix.result import EXCEPTIONS, Effect, effects_of
from breakscan.model.words import grouped
from breakscan.prove.call_runs import CallRuns
from breakscan.prove.changed_code import UnseenCode, UnseenKind, replaced_tests, set_elsewhere, statement_around, unrun
from breakscan.prove.equal import Change, Part, ResultDifference
from breakscan.prove.observation import Observation, ObservationKind, other_calls
from breakscan.prove.original import Original, probing
from breakscan.prove.proof import VariedDifference
from breakscan.prove.protocol import RanCode, VariedCall, span_of
from breakscan.prove.varied_calls import VariedCalls
from breakscan.prove.worker import UNCHANGED, Candidate, OutOfTime, Worker, WorkerError
from breakscan.source.module import SourceProblem, decode_source, read_source
from breakscan.source.paths import display_path
from breakscan.source.walking import asks_for_compiling

_EFFECTS: Mapping[Part | Change, Effect] = {
    Part.GRADIENT: Effect.GRADIENTS,
    Part.STATE: Effect.STATE,
    Part.RANDOM: Effect.RANDOM,
    Change.DTYPE: Effect.DTYPES,
    Change.SHAPE: Effect.SHAPES,
    Change.ALIAS: Effect.STORAGE,
    Change.STRIDES: Effect.STRIDES,
    **dict.fromkeys((Change.ELEMENT, Change.ERROR, Change.TIE), Effect.VALUES),
    **dict.fromkeys((Change.NUMBER, Change.MISSING, Change.NEW), Effect.TYPES),
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


LONGEST = 6.0
"""Seconds for which the varied calls of a process may be busy together."""


def _of_kinds(calls: Iterable[VariedCall]) -> list[tuple[VariedCall, ...]]:
    """The first call of each kind, as there may be no time for all, then the others, kind by kind: a process that ends
    takes those of a kind along."""
    groups = grouped((call.kind, call) for call in calls)
    parts = (group[part] for part in (slice(1), slice(1, None)) for group in groups.values())
    return [tuple(part) for part in parts if part]


class Probe:
    """Starts the process. ``files`` are those that changes replace. ``problem`` says what it could not show, ``done``
    whether the calls were varied. An outcome that was not recorded counts as not seen."""

    def __init__(self, original: Original, files: Sequence[str]) -> None:
        self._original = original
        self.problem: Observation | None = None
        self._names = [one.name for one in original.about.callables]
        self._ran: list[Mapping[str, RanCode]] = []
        self._varied: dict[int, tuple[VariedCall, ...]] = {}
        self._repeated: dict[tuple[VariedCall, bool], tuple[ResultDifference, ...]] = {}
        """The differences of the unchanged program from itself, in calls in which a change differs, by whether they run
        as if they were compiled."""
        self.done = False
        self._texts = {path: text for path in files if (text := text_of(path)) is not None}
        start = original.workers.start(probing({path: (text, text) for path, text in self._texts.items()}), probes=True)
        self._worker = original.processes.enter_context(start)
        pool = original.processes.enter_context(ThreadPoolExecutor(1))
        # Nobody waits for a program that is not needed.
        original.processes.callback(lambda: None if self._asked.done() else self._worker.kill())
        self._folder = str(self._worker.folder)
        self._asked = pool.submit(self._ask, self._worker)

    def ready(self) -> None:
        """Waits until it has varied the calls."""
        try:
            self._asked.result()
        except WorkerError as error:
            self.problem = Observation(ObservationKind.NOT_PROBED, error.first_line)
        except OutOfTime:
            self.problem = Observation(ObservationKind.VARIED_CUT)

    def _ask(self, worker: Worker) -> None:
        with worker:
            about = worker.ready()
            other, problems = other_calls(about, self._original.about), self._original.hand_over(worker)
            if other or problems:
                self.problem = Observation(ObservationKind.NOT_PROBED, other or "", details=tuple(problems))
                return
            self._ran += [about.ran, worker.ask(CallRuns.eager, dict.fromkeys(self._texts, ()))[0]]
            names = sorted(set().union(*map(set_elsewhere, self._texts.values())))
            left = LONGEST
            for number, calls in enumerate(_of_kinds(worker.ask(VariedCalls.plan, tuple(names), self._folder))):
                try:
                    run = worker.ask(VariedCalls.probe, self._folder, number, calls, left)
                except WorkerError:
                    return
                left -= run.seconds
                self._ran.append(run.ran)
                self._varied |= {number: run.calls} if run.calls else {}

    def vary(
        self, candidate: Candidate, worker: Worker, ran: Mapping[str, RanCode]
    ) -> tuple[list[VariedDifference], list[UnseenCode]]:
        """Runs the varied calls in the process of a changed program, which cannot be relied on afterwards. ``ran`` is
        the code of it that ran until now. Returns the differences, and what no call ran."""
        self.ready()
        self.done = True
        effects = effects_of(candidate.differences)
        found: list[VariedDifference] = []
        others: dict[tuple[VariedCall, bool], tuple[ResultDifference, ...]] = {}
        code = [ran]
        # Eager code never runs what a file leaves to the compiler alone.
        compiling = any(asks_for_compiling(ast.parse(after)) for _, after in candidate.texts.values())
        left = LONGEST * (1 + compiling)
        for (number, calls), as_compiled in product(self._varied.items(), (True, False)[not compiling :]):
            try:
                expected = self._folder, number, self._original.reference
                run = worker.ask(VariedCalls.compare, *expected, calls, left, as_compiled)
            except WorkerError as error:
                found.append(VariedDifference(calls[0], self._names[calls[0].callable], error=error.first_line))
                break
            except OutOfTime:
                self.problem = Observation(ObservationKind.VARIED_CUT)
                break
            left -= run.seconds
            code.append(run.ran)
            found_now = zip(run.calls, run.differences, strict=True)
            others |= {(call, as_compiled): one for call, one in found_now if one}
        self._repeat(others.keys() - self._repeated.keys())
        for (call, as_compiled), differences in others.items():
            if not self._repeated[call, as_compiled]:
                # One that the change does not state comes first.
                one = next((one for one in differences if not is_stated(one, effects)), differences[0])
                name = self._names[call.callable]
                found.append(VariedDifference(call, name, one, is_stated=is_stated(one, effects)))
        return list(dict.fromkeys(found)), list(self._unseen(candidate, code))

    def _repeat(self, calls: Collection[tuple[VariedCall, bool]]) -> None:
        """Runs calls again without a change, in a further process: where they differ, a change need not be why."""
        self._repeated.update(dict.fromkeys(calls, ()))
        if not calls:
            return
        with contextlib.suppress(WorkerError, OutOfTime), self._original.workers.start(UNCHANGED) as again:
            again.ready()
            if self._original.hand_over(again):
                return
            for (number, of_kind), as_compiled in product(self._varied.items(), (False, True)):
                if wanted := tuple(call for call in of_kind if (call, as_compiled) in calls):
                    expected = self._folder, number, self._original.reference
                    run = again.ask(VariedCalls.compare, *expected, wanted, LONGEST, as_compiled)
                    ran = ((call, as_compiled) for call in run.calls)
                    self._repeated.update(zip(ran, run.differences, strict=True))
        if details := [one[0] for one in self._repeated.values() if one]:
            self.problem = Observation(ObservationKind.VARIED_UNREPEATABLE, details=tuple(details[:1]))

    def _unseen(self, candidate: Candidate, ran: Sequence[Mapping[str, RanCode]]) -> Iterator[UnseenCode]:
        """The code of a change that no call ran, and the outcomes of replaced tests that none had."""
        if not self._ran:
            yield UnseenCode(UnseenKind.OUTSIDE, "", 0, "it was not recorded which code the calls ran without it")
            return
        if not self._varied:
            yield UnseenCode(UnseenKind.OUTSIDE, "", 0, "no varied call could be compared")
        for path, (before, after) in candidate.texts.items():
            name, lines = display_path(path, os.getcwd()), candidate.lines[path]
            old, new = (sum((one[path] for one in each if path in one), RanCode()) for each in (self._ran, ran))
            hidden: set[int] = set()
            for test in replaced_tests(before, after, lines):
                missing = tuple(one for one in (True, False) if (span_of(test), one) not in old.outcomes)
                if missing:
                    code = " ".join((ast.get_source_segment(before, test) or ast.unparse(test)).split())
                    hidden.update(statement_around(before, test))
                    yield UnseenCode(UnseenKind.OUTCOME, name, test.lineno, code, missing)
            kept = {origin + 1 for origin, is_kept in zip(lines.origins, lines.kept, strict=True) if is_kept}
            replaced = set(range(1, before.count("\n") + 2)) - kept - hidden
            yield from unrun(UnseenKind.REPLACED, name, before, after, replaced, old)
            yield from unrun(UnseenKind.NEW, name, after, before, lines.changed_lines(), new)


def text_of(path: str) -> str | None:
    """The text of a file; None if it cannot be read."""
    with contextlib.suppress(SourceProblem):
        return decode_source(read_source(Path(path), path), path)
    return None
