"""The unchanged program, in two processes that keep running.

The first gives its values to all others, and its eager results are compared with theirs.  The second shows how much two
processes of the same program differ.
"""

from __future__ import annotations

import contextlib
import itertools
import os
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from breakscan.explanation.explanation import Explanation
from breakscan.explanation.from_processes import explain_processes
from breakscan.explanation.function_values import observations_of
from breakscan.model.observations import Observations
from breakscan.prove.call_runs import CallRuns, SharedState
from breakscan.prove.candidate import UNCHANGED, Candidate
from breakscan.prove.commands import CommandHandler
from breakscan.prove.comparison import Compared, Comparison
from breakscan.prove.compiled_parts import CompiledParts
from breakscan.prove.equal import MEMORY, NOTED, STRUCTURE, Change, Noise, Part, ResultDifference
from breakscan.prove.fork_server import ForkServerProcess
from breakscan.prove.observation import Observation, ObservationKind, other_calls, require_calls
from breakscan.prove.proof import Metrics
from breakscan.prove.protocol import (
    CompiledResult,
    CompiledRun,
    Description,
    RunKind,
    StateDigests,
    TimedStep,
    ValueMismatch,
)
from breakscan.prove.regions import RegionalCompiler
from breakscan.prove.step_timer import StepTimer
from breakscan.prove.worker import UserProgram, Worker, WorkerError
from breakscan.recording.recording import compiled
from breakscan.recording.records import Record
from breakscan.rulebook.document import Rule
from breakscan.source.paths import display_path
from breakscan.source.source_files import SourceFiles


def explained(
    worker: Worker, rules: Iterable[Rule], texts: Mapping[tuple[str, int], str]
) -> tuple[Explanation, Sequence[Sequence[Record]]]:
    """The explanation of what was recorded in a worker until now, and the records.  ``texts`` are lines that differ
    from those on disk, by path and number."""
    processes = [process for process in worker.records() if compiled(process)]
    cwd = os.getcwd()
    files = SourceFiles.trusted()
    files.know(texts)
    explanation = explain_processes(
        processes,
        argv=worker.program.argv,
        outcome=None,
        rules=rules,
        show=lambda path: display_path(path, cwd),
        torch_imported=True,
        files=files,
    )
    return explanation, processes


def kernels_of_step(explanation: Explanation, steps: float) -> dict[str, int]:
    """Kernels by kind; ``steps`` is how often each callable was called while it was recorded."""
    kernels: dict[str, float] = defaultdict(float)
    for graph in explanation.graphs:
        for made in graph.generated:
            for kernel in made.kernels:
                kernels[kernel.kind.value] += kernel.calls * (graph.runs or 0) / steps
    return {kind: max(1, round(count)) for kind, count in kernels.items() if count}


class SavedValues:
    """The values of the calls of a worker, in a file."""

    def __init__(self, worker: Worker) -> None:
        self._path = _at(worker, "values")
        worker.ask(SharedState.save, self._path)

    def hand_over(self, worker: Worker) -> tuple[ValueMismatch, ...]:
        """Gives the values to a worker. Returns those that it cannot take over."""
        return worker.ask(SharedState.take, self._path)


class Baseline:
    """The results of the calls of a worker, run eager with the values that it saved, and the noise of these.

    ``no_exact`` says why there are no results in higher precision, ``random`` that random numbers are drawn, ``lines``
    which lines of the ``watched`` files the calls execute, and ``first_seconds`` how long the first calls take.
    ``unrepeatable`` is the first result that does not repeat itself in further runs, or the first value that a further
    process does not take over.  ``unlike`` are Python numbers and texts of results that do not, such as a time: they
    are not compared.
    """

    def __init__(self, worker: Worker, values: SavedValues, watched: Sequence[str]) -> None:
        self.values = values
        self.path = _at(worker, "expected")
        self.noise: tuple[Noise, ...] = ()
        self.eager_noise: tuple[Noise, ...] = ()
        """That of eager runs alone."""
        run = worker.ask(CallRuns.eager, tuple(watched))
        self.random = run.random
        self.first_seconds = run.first_seconds
        self.lines: Mapping[str, tuple[int, ...]] = {path: ran.lines for path, ran in run.ran.items()}
        self.prints_same = True
        """True if the calls print the same each time, as far as that was looked at."""
        self.unrepeatable: ValueMismatch | ResultDifference | None = None
        self.unlike: dict[tuple[Part, str], ResultDifference] = {}
        self._double = True
        self.no_exact = worker.ask(CallRuns.exact, True)
        if self.no_exact is not None:
            self._double = False
            self.no_exact = worker.ask(CallRuns.exact, False)
        worker.ask(Comparison.keep, self.path)
        self._worker = worker

    @property
    def notes(self) -> list[Observation]:
        """Remarks on the comparison."""
        notes = []
        if self.no_exact is not None:
            notes.append(Observation(ObservationKind.NO_EXACT, self.no_exact))
        if names := tuple(path for part, path in self.unlike if part is not Part.OUTSIDE):
            notes.append(Observation(ObservationKind.VARIES, names=names))
        return notes

    def repeat(self, again: Worker) -> None:
        """Runs another worker of the same program, which gets the same values."""
        if problems := self.values.hand_over(again):
            self.unrepeatable = self.unrepeatable or problems[0]
            return
        self._repeat(again)
        if self.noise:
            # One run may come close by chance.
            self._repeat(self._worker)
            if compared := self._exact(again):
                self._add(compared.distances)
        self.eager_noise = self.noise

    def compare(self, worker: Worker, *kinds: RunKind, moves: bool = False) -> Compared:
        """Compares runs of a worker."""
        compared = worker.ask(Comparison.compare, self.path, kinds, self.noise, moves)
        return replace(compared, differences=tuple(self._comparable(compared.differences)))

    def exact_differences(self, worker: Worker) -> tuple[ResultDifference, ...]:
        """The differences of a worker of a changed program in higher precision, if both can be run in it."""
        compared = self._exact(worker)
        return compared.differences if compared is not None else ()

    def compiled_differences(self, worker: Worker, unchanged: bool = False) -> list[ResultDifference]:
        """The differences between compiled and eager results, at the first calls and after a row of calls.  Inductor
        draws other random numbers than eager code: where any are drawn, a run in which it draws the same ones is
        compared.  What differs in the ``unchanged`` program is noise for others."""
        compared = self.compare(worker, RunKind.FIRST, RunKind.STEADY)
        found = list(compared.differences)
        if self.random:
            found = [one for one in found if one.change in STRUCTURE]
            worker.ask(CompiledParts.run, None, {"fallback_random": True}, None)
            compared = self.compare(worker, RunKind.OTHERWISE)
            found += compared.differences
        if unchanged:
            self._add(compared.distances)
            return [one for one in found if one.change not in NOTED]
        return [one for one in found if one.change not in MEMORY]

    def differences_of_call(self, worker: Worker, number: int, same_random: bool) -> list[ResultDifference]:
        """The differences of the compiled result of one call of the unchanged program, for which its compiled runs are
        no noise. ``same_random``: it draws the random numbers of eager code, if there are any."""
        found = self._comparable(worker.ask(Comparison.compare_call, self.path, number, self.eager_noise))
        kept = set(Change) if same_random or not self.random else STRUCTURE
        return [one for one in found if one.change in kept and one.change not in NOTED]

    def _add(self, distances: Iterable[Noise]) -> None:
        self.noise = (*self.noise, *distances)

    def _repeat(self, worker: Worker) -> None:
        worker.ask(CallRuns.eager, ())
        compared = worker.ask(Comparison.compare, self.path, (RunKind.EAGER,), self.noise, False)
        self._add(compared.distances)
        self.prints_same = self.prints_same and compared.printed is None
        for one in compared.unlike:
            self.unlike.setdefault((one.part, one.path), one)
        self.unrepeatable = self.unrepeatable or next(iter(compared.varying), None)

    def _comparable(self, found: Iterable[ResultDifference]) -> list[ResultDifference]:
        return [one for one in found if (one.part, one.path) not in self.unlike]

    def _exact(self, worker: Worker) -> Compared | None:
        """Compares a worker in higher precision, if both can be run in it."""
        if self.no_exact is not None or worker.ask(CallRuns.exact, self._double) is not None:
            return None
        return self.compare(worker, RunKind.EXACT)


def compile_as(worker: Worker, candidate: Candidate) -> None:
    """Makes a worker compile with the options and in the regions of a candidate from now on."""
    if candidate.options is not None:
        worker.ask(CommandHandler.compile, dict(candidate.options))
    if candidate.regional is not None:
        worker.ask(RegionalCompiler.compile, candidate.regional)


def run_compiled(worker: Worker, patient: bool = True) -> CompiledResult:
    """Runs the calls of a worker compiled, for :meth:`Baseline.compiled_differences`."""
    return worker.ask(CallRuns.compiled, patient)


def _at(worker: Worker, name: str) -> str:
    return str(worker.folder / f"{name}.pt")


@dataclass(frozen=True, slots=True)
class CompiledProgram:
    """The result of compiling the captured calls in a worker."""

    explanation: Explanation
    metrics: Metrics
    observations: Observations
    """The values of its functions."""


OtherStart = dict[tuple[str, str], str]
"""The values that differ before the first calls, by kind (``values``, ``generators``, ``plains``) and name: digests, or
texts of plain values."""


class Workers:
    """Starts the processes of a program, each with its own folder in ``folder``."""

    def __init__(
        self, program: UserProgram, folder: Path, server: ForkServerProcess, library: Iterable[Rule] = ()
    ) -> None:
        self.program = program
        self.server = server
        self._folder = folder
        self._library = library
        self._numbers = itertools.count(1)

    def start(
        self,
        candidate: Candidate,
        cache_of: Worker | None = None,
        probes: bool = False,
    ) -> Worker:
        """Starts a process of the program with a change. It has the compiler caches of another one, if one is given."""
        folder = self._folder / f"worker{next(self._numbers)}"
        cache = None if cache_of is None else cache_of.folder
        return Worker(self.program, candidate, folder, cache, self.server, probes)

    def compile(self, worker: Worker, candidate: Candidate) -> CompiledProgram:
        """Runs the calls compiled. Raises WorkerError."""
        compile_as(worker, candidate)
        run = run_compiled(worker).run
        if run is None:
            raise WorkerError("the calls were not compiled")
        texts = {
            (path, number): line
            for path, (_, after) in candidate.texts.items()
            for number, line in enumerate(after.split("\n"), 1)
        }
        explanation, processes = explained(worker, self._library, texts)
        return CompiledProgram(explanation, _metrics(explanation, run), observations_of(processes))


NOT_TRIED = (ObservationKind.NOT_LOADED, ObservationKind.UNKNOWN_SETTINGS, ObservationKind.SETTINGS_LOST)


@dataclass
class Original:
    """The two processes of the unchanged program."""

    workers: Workers
    first: Worker
    second: Worker
    about: Description
    values: SavedValues

    @cached_property
    def starts(self) -> Sequence[StateDigests]:
        """The start that the first calls found."""
        return self.first.ask(SharedState.start)

    @cached_property
    def wavering(self) -> OtherStart:
        """The values that already differ between the two before the first calls."""
        return _other_start(self.starts, self.second.ask(SharedState.start))

    @cached_property
    def step(self) -> TimedStep:
        """The step that is timed: chosen in the first process, after its results were taken."""
        step = self.first.ask(StepTimer.choose)
        path, _, line = (step.loop or "").rpartition(":")
        return replace(step, loop=f"{display_path(path, os.getcwd())}:{line}") if path else step

    def time_alike(self, *workers: Worker) -> None:
        """Makes other workers time the same step.  Raises WorkerError."""
        for worker in workers:
            if not worker.ask(StepTimer.use, self.step):
                raise WorkerError("its step makes other calls than without the change")

    @cached_property
    def compiled(self) -> CompiledProgram:
        """The calls of the first process, compiled."""
        return self.workers.compile(self.first, UNCHANGED)

    def incomparable(self, worker: Worker, about: Description, candidate: Candidate) -> Observation | None:
        """Gives a worker of a candidate the values of the first one. Returns why it cannot be compared, or why the
        candidate was not tried: a kind that is in :data:`NOT_TRIED`.
        """
        run = about.run
        if run.error and run.error != self.about.run.error:
            return Observation(ObservationKind.FAILS_WITH_CHANGE, run.error)
        if other := other_calls(about, self.about):
            return Observation(ObservationKind.OTHER_CALLS, calls=other)
        missing = tuple(display_path(path, os.getcwd()) for path in candidate.texts if path not in run.loaded)
        for kind, names in zip(NOT_TRIED, (missing, run.unknown_settings, run.lost_settings), strict=True):
            if names:
                return Observation(kind, names=names)
        problems = self.values.hand_over(worker)
        return Observation(ObservationKind.OTHER_VALUES, details=tuple(problems)) if problems else None

    def other_start(self, worker: Worker) -> OtherStart:
        """Returns what differs in a worker before the first calls."""
        found = _other_start(self.starts, worker.ask(SharedState.start))
        return {key: value for key, value in found.items() if key not in self.wavering}


@contextlib.contextmanager
def running_original(workers: Workers) -> Iterator[Original]:
    """Starts the unchanged program.  Raises NothingToMeasure and WorkerError."""
    # The time that it takes to compile is measured in the first one alone.
    with workers.start(UNCHANGED) as first, workers.start(UNCHANGED, first) as second:
        about = first.ready()
        require_calls(about)
        second.ready()
        yield Original(workers, first, second, about, SavedValues(first))


def _other_start(own: Sequence[StateDigests], other: Sequence[StateDigests]) -> OtherStart:
    return {
        (kind, name): its_value
        for mine, its in zip(own, other, strict=False)
        for kind in ("values", "generators", "plains")
        for name, value in getattr(mine, kind).items()
        if (its_value := getattr(its, kind).get(name, value)) != value
    }


def _metrics(explanation: Explanation, run: CompiledRun) -> Metrics:
    return Metrics(
        breaks=explanation.break_events,
        recompiles=len(explanation.recompiles),
        graphs=len(explanation.graphs),
        eager_frames=explanation.eager_frames,
        kernels=kernels_of_step(explanation, run.calls_each),
        compile_seconds=explanation.compile_seconds,
        first_call_seconds=run.first_call_seconds,
    )
