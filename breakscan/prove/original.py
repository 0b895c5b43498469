"""The unchanged program, in two processes that keep running.

The first gives its values to all others, and its eager results are compared with theirs.  The second shows how much two
processes of the same program differ.
"""

from __future__ import annotations

import contextlib
import itertools
import os
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from breakscan.explanation.explanation import Explanation
from breakscan.explanation.from_processes import explain_processes
from breakscan.explanation.function_values import observations_of
from breakscan.model.observations import Observations
from breakscan.prove.call_result import CallResult, load_results
from breakscan.prove.call_runs import CallRuns, SharedState
from breakscan.prove.candidate import UNCHANGED, Candidate, Label, MeasuringStep
from breakscan.prove.compiled_parts import CompiledParts
from breakscan.prove.equal import NOISE, ResultDifference, Strictness, differences
from breakscan.prove.fork_server import ForkServerProcess
from breakscan.prove.observation import require_calls
from breakscan.prove.proof import KernelCode, Metrics
from breakscan.prove.protocol import (
    CompiledResult,
    CompiledRun,
    Description,
    Mismatch,
    RanCode,
    StateDigests,
    ValueMismatch,
)
from breakscan.prove.worker import UserProgram, Worker, WorkerError
from breakscan.recording.recording import compiled
from breakscan.recording.records import Record
from breakscan.rulebook.document import Rule
from breakscan.rulebook.library import Library
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


@dataclass(frozen=True, slots=True)
class Unrepeatable:
    """The differences of a second process of the same program: values that it cannot take over, and results."""

    values: tuple[ValueMismatch, ...]
    results: tuple[ResultDifference, ...]

    def __bool__(self) -> bool:
        return bool(self.values or self.results)

    @property
    def first(self) -> ValueMismatch | ResultDifference:
        """The first difference, if there is one."""
        return self.values[0] if self.values else self.results[0]


class SavedValues:
    """The values of the calls of a worker, in a file."""

    def __init__(self, worker: Worker) -> None:
        self._path = _at(worker, "values")
        self._digests: tuple[StateDigests, ...] = worker.ask(SharedState.save, self._path)

    def hand_over(self, worker: Worker) -> list[ValueMismatch]:
        """Gives the values to a worker. Returns those that it cannot take over, and those that still differ there."""
        problems = list(worker.ask(SharedState.take, self._path))
        if problems:
            return problems
        for own, other in zip(self._digests, worker.ask(SharedState.digests), strict=False):
            for mine, its in ((own.values, other.values), (own.generators, other.generators)):
                problems += [ValueMismatch(name, Mismatch.DIGEST) for name in mine if its.get(name) != mine[name]]
        return problems


class Baseline:
    """The results of the calls of a worker, run eager with the values that it saved.

    ``eager`` are the results, ``double`` those in double precision, ``no_double`` says why there are none.  ``random``
    says that random numbers are drawn, ``lines`` which lines of the ``watched`` files the calls execute.
    """

    def __init__(self, worker: Worker, values: SavedValues, watched: Sequence[str]) -> None:
        self.values = values
        path = _at(worker, "eager")
        run = worker.ask(CallRuns.eager, path, tuple(watched))
        self.random = run.random
        self.lines: Mapping[str, tuple[int, ...]] = {path: ran.lines for path, ran in run.ran.items()}
        self.eager = load_results(path)
        self.double: list[CallResult] | None = None
        self.no_double: str | None = None
        self.prints_same = True
        """Whether the calls print the same each time, as far as that was looked at."""
        if not self.random:
            exact = _at(worker, "double")
            self.no_double = worker.ask(CallRuns.double, exact)
            if self.no_double is None:
                self.double = load_results(exact)

    def unrepeatable(self, again: Worker) -> Unrepeatable:
        """Returns how another worker of the same program differs when it has the same values."""
        problems = self.values.hand_over(again)
        results, _ = run_eager(again, ())
        for one, other in zip(self.eager, results, strict=False):
            self.prints_same = self.prints_same and one.printed == other.printed
            noise = {
                name for name in {**one.outside, **other.outside} if one.outside.get(name) != other.outside.get(name)
            }
            one.outside |= dict.fromkeys(noise, NOISE)
        return Unrepeatable(tuple(problems), tuple(differences(self.eager, results, None, Strictness.EAGER)))

    def compiled(self, worker: Worker) -> dict[str, list[CallResult]]:
        """The results of a worker that has run its calls compiled: the first ones, and those after a row of calls.
        Inductor draws other random numbers than eager code: where any are drawn, a further run draws those of eager
        code."""
        found = {name: load_results(path) for name, path in _compiled_paths(worker).items()}
        if self.random:
            path = _at(worker, "random")
            worker.ask(CompiledParts.run, path, None, {"fallback_random": True}, None)
            found["random"] = load_results(path)
        return found

    def differences(self, runs: Mapping[str, list[CallResult]], types: bool = True) -> list[ResultDifference]:
        """How the results that :meth:`compiled` returns differ from the eager results.  Unless ``types``, a tensor may
        replace a number."""
        found: list[ResultDifference] = []
        for name, results in runs.items():
            drawn = name == "random"
            how = Strictness.COMPILED.but(random=drawn, values=drawn or not self.random, types=types)
            found += differences(self.eager, results, self.double, how)
        return found

    def differences_of_call(self, number: int, result: CallResult, same_random: bool) -> list[ResultDifference]:
        """How the compiled result of one call differs. ``same_random`` says that it draws the random numbers of eager
        code."""
        results = [*self.eager[:number], result, *self.eager[number + 1 :]]
        return self.differences({"random" if same_random else "first": results})


def run_eager(worker: Worker, watched: Sequence[str]) -> tuple[list[CallResult], Mapping[str, RanCode]]:
    """The eager results of a worker, and which code of these files the calls execute."""
    path = _at(worker, "eager")
    run = worker.ask(CallRuns.eager, path, tuple(watched))
    return load_results(path), run.ran


def run_compiled(worker: Worker, patient: bool = True) -> CompiledResult:
    """Runs the calls of a worker compiled, for :meth:`Baseline.compiled`."""
    paths = _compiled_paths(worker)
    return worker.ask(CallRuns.compiled, paths["first"], paths["steady"], patient)


def _compiled_paths(worker: Worker) -> dict[str, str]:
    return {name: _at(worker, name) for name in ("first", "steady")}


def _at(worker: Worker, name: str) -> str:
    return str(worker.folder / f"{name}.pt")


Say = Callable[[MeasuringStep, Label | None], None]
"""Told what is done, with the change that it is done for; None stands for the unchanged program."""


@dataclass(frozen=True, slots=True)
class CompiledProgram:
    """The result of compiling the captured calls in a worker."""

    explanation: Explanation
    metrics: Metrics
    observations: Observations
    """The values of its functions."""


@dataclass(frozen=True, slots=True)
class OtherStart:
    """The names of values and of generators that differ before the first calls, and of plain values with what each
    is."""

    values: frozenset[str]
    generators: frozenset[str]
    plains: frozenset[tuple[str, str]]

    def without(self, other: OtherStart) -> OtherStart:
        """Returns the names that ``other`` does not have."""
        wavering = {name for name, _ in other.plains}
        plains = frozenset(one for one in self.plains if one[0] not in wavering)
        return OtherStart(self.values - other.values, self.generators - other.generators, plains)


class Workers:
    """Starts the processes of a program, each with its own folder in ``folder``."""

    def __init__(self, program: UserProgram, folder: Path, library: Library, server: ForkServerProcess) -> None:
        self._program = program
        self._folder = folder
        self._library = library
        self._server = server
        self._numbers = itertools.count(1)

    def start(
        self,
        candidate: Candidate,
        cache_of: Worker | None = None,
        records_outcomes: bool = False,
        looks_later: bool = False,
    ) -> Worker:
        """Starts a process of the program with a change. It has the compiler caches of another one, if one is given."""
        folder = self._folder / f"worker{next(self._numbers)}"
        cache = None if cache_of is None else cache_of.folder
        return Worker(self._program, candidate, folder, cache, self._server, records_outcomes, looks_later)

    def compile(self, worker: Worker, candidate: Candidate) -> CompiledProgram:
        """Runs the calls compiled. Raises WorkerError."""
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


@dataclass(frozen=True, slots=True)
class Original:
    """The two processes of the unchanged program. ``wavering`` holds what already differs between them before the first
    calls.
    """

    workers: Workers
    first: Worker
    second: Worker
    about: Description
    starts: Sequence[StateDigests]
    wavering: OtherStart
    values: SavedValues
    compiled: CompiledProgram

    def other_start(self, worker: Worker) -> OtherStart:
        """Returns what differs in a worker before the first calls."""
        return _other_start(self.starts, worker.ask(SharedState.start)).without(self.wavering)


@contextlib.contextmanager
def running_original(program: UserProgram, folder: Path, library: Library, say: Say) -> Iterator[Original]:
    """Starts the program in ``folder``, which is new.  Raises NothingToMeasure and WorkerError."""
    say(MeasuringStep.RUN, None)
    with contextlib.ExitStack() as stack:
        server = stack.enter_context(ForkServerProcess())
        workers = Workers(program, folder, library, server)
        first = stack.enter_context(workers.start(UNCHANGED))
        # The time that it takes to compile is measured in the first one alone.
        second = stack.enter_context(workers.start(UNCHANGED, first))
        about = first.ready()
        require_calls(about)
        second.ready()
        starts = first.ask(SharedState.start)
        wavering = _other_start(starts, second.ask(SharedState.start))
        values = SavedValues(first)
        say(MeasuringStep.COMPILE, None)
        compiled = workers.compile(first, UNCHANGED)
        yield Original(
            workers,
            first,
            second,
            about,
            starts,
            wavering,
            values,
            compiled,
        )


def _other_start(own: Sequence[StateDigests], other: Sequence[StateDigests]) -> OtherStart:
    values: set[str] = set()
    generators: set[str] = set()
    plains: set[tuple[str, str]] = set()
    for mine, its in zip(own, other, strict=False):
        values |= _differing(mine.values, its.values)
        generators |= _differing(mine.generators, its.generators)
        plains |= {(name, its.plains[name]) for name in _differing(mine.plains, its.plains)}
    return OtherStart(frozenset(values), frozenset(generators), frozenset(plains))


def _differing(own: Mapping[str, str], other: Mapping[str, str]) -> set[str]:
    return {name for name in own if name in other and own[name] != other[name]}


def _metrics(explanation: Explanation, run: CompiledRun) -> Metrics:
    code = [
        KernelCode(graph.function or "", made.phase, made.code)
        for graph in explanation.graphs
        for made in graph.generated
        if made.code
    ]
    return Metrics(
        breaks=explanation.break_events,
        recompiles=len(explanation.recompiles),
        graphs=len(explanation.graphs),
        eager_frames=explanation.eager_frames,
        kernels=kernels_of_step(explanation, run.calls_each),
        compile_seconds=explanation.compile_seconds,
        first_call_seconds=run.first_call_seconds,
        code=tuple(code),
    )
