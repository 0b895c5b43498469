"""What a further process of the unchanged program shows: the outcomes of its tests, and its results with other inputs.

Other inputs can end a process, and on a GPU they can make it unusable: so it is none of those that are timed.
"""

from __future__ import annotations

import ast
import contextlib
import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from breakscan.source.module import SourceProblem, decode_source, read_source
from breakscan.source.paths import display_path
from breakscan.verify.candidates import Candidate
from breakscan.verify.original import Original
from breakscan.verify.proof import StressDifference, UnseenOutcome
from breakscan.verify.replaced_tests import replaced_tests
from breakscan.worker.call_result import CallResult, load_results
from breakscan.worker.captured_program import other_calls
from breakscan.worker.compare import Strictness, differences
from breakscan.worker.difference import ResultDifference
from breakscan.worker.observation import Observation, ObservationKind
from breakscan.worker.outcomes import span_of
from breakscan.worker.protocol import ExpressionSpan, RecordOutcomes, RunStressed, StressedCall
from breakscan.worker.worker import ProgramChange, Worker, WorkerError

_Outcomes = Mapping[ExpressionSpan, frozenset[bool]]


class Probe:
    """Starts the process, and ends it again. ``files`` are those that changes replace.

    ``problem`` says what it could not show. An outcome that was not recorded counts as not seen.
    """

    def __init__(self, original: Original, files: Sequence[str]) -> None:
        self.problem: Observation | None = None
        self._names = [one.name for one in original.about.callables]
        self._outcomes: dict[str, _Outcomes] = {}
        self._results: dict[StressedCall, CallResult] = {}
        change = ProgramChange(
            {path: text for path in files if (text := _text(path)) is not None}, records_outcomes=True
        )
        try:
            with original.workers.start(change) as worker:
                self._ask(original, worker)
        except WorkerError as error:
            kind = ObservationKind.NOT_STRESSED if self._outcomes else ObservationKind.NOT_PROBED
            self.problem = Observation(kind, error.first_line)

    def _ask(self, original: Original, worker: Worker) -> None:
        about = worker.ready()
        if other := other_calls(about, original.about):
            self.problem = Observation(ObservationKind.PROBE_MAKES_OTHER_CALLS, calls=other)
            return
        if problems := original.values.hand_over(worker):
            self.problem = Observation(ObservationKind.PROBE_HAS_OTHER_VALUES, details=tuple(problems))
            return
        for path, seen in worker.ask(RecordOutcomes()).items():
            self._outcomes[path] = {
                one.span: frozenset(outcome for outcome, was in ((True, one.true), (False, one.false)) if was)
                for one in seen
            }
        self._results, stopped = _stressed(worker)
        if stopped is not None:
            self.problem = Observation(ObservationKind.NOT_STRESSED, stopped)

    def unseen(self, candidate: Candidate) -> tuple[UnseenOutcome, ...]:
        """Returns the outcomes that replaced tests had in no captured call."""
        found = []
        for path, (before, after) in candidate.texts.items():
            outcomes = self._outcomes.get(os.path.realpath(path), {})
            for test in replaced_tests(before, after, candidate.lines[path]):
                missing = frozenset({True, False}) - outcomes.get(span_of(test), frozenset())
                if missing:
                    code = " ".join((ast.get_source_segment(before, test) or ast.unparse(test)).split())
                    shown = display_path(path, os.getcwd())
                    found.append(UnseenOutcome(shown, test.lineno, code, tuple(sorted(missing, reverse=True))))
        return tuple(found)

    def stress(self, worker: Worker) -> tuple[StressDifference, ...]:
        """Runs the calls of a changed program with the same other inputs. Returns the first difference of each kind of
        inputs, for each callable. The process cannot be relied on afterwards.
        """
        if not self._results:
            return ()
        try:
            results, stopped = _stressed(worker)
        except WorkerError as error:
            results, stopped = {}, error.first_line
        found = []
        for call, result in self._results.items():
            difference = stressed_difference(result, results[call]) if call in results else None
            if difference is not None:
                found.append(StressDifference(call.stress, self._names[call.callable], difference))
        missing = [call for call in self._results if call not in results]
        if missing and stopped is not None:
            found.append(StressDifference(missing[0].stress, self._names[missing[0].callable], error=stopped))
        return tuple(found)


def _stressed(worker: Worker) -> tuple[dict[StressedCall, CallResult], str | None]:
    """The results of a worker with other inputs, and why there are no more."""
    path = str(worker.folder / "stressed.pt")
    run = worker.ask(RunStressed(path))
    return dict(zip(run.ended, load_results(path), strict=True)), run.stopped


def stressed_difference(one: CallResult, other: CallResult) -> ResultDifference | None:
    """How one result with other inputs differs first. After the same exception, nothing else counts."""
    if one.error is not None and one.error == other.error:
        return None
    return next(iter(differences([one], [other], None, Strictness.EAGER)), None)


def _text(path: str) -> str | None:
    """The text of a file; None if it cannot be read."""
    with contextlib.suppress(SourceProblem):
        return decode_source(read_source(Path(path), path), path)
    return None
