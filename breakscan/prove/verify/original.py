"""The unchanged program, in two processes that keep running.

The first gives its values to all others. The second shows how much two processes of the same program differ.
"""

from __future__ import annotations

import contextlib
import copy
import itertools
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from breakscan.explain.explanation import Explanation
from breakscan.explain.function_values import observations_of
from breakscan.model.observations import Observations
from breakscan.prove.verify.label import Label
from breakscan.prove.verify.proof import KernelCode, Metrics
from breakscan.prove.worker.baseline import SavedValues, run_compiled
from breakscan.prove.worker.captured_program import require_calls, require_one_device
from breakscan.prove.worker.compiled_code import explained, kernels_of_step
from breakscan.prove.worker.devices import Placement, placements
from breakscan.prove.worker.forks import ForkServerProcess
from breakscan.prove.worker.progress import MeasuringStep
from breakscan.prove.worker.protocol import CompiledRun, Description, DigestStart, FindOverwritten, StateDigests
from breakscan.prove.worker.worker import ProgramChange, UserProgram, Worker, WorkerError
from breakscan.rulebook.library import Library

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
    """The names of values and of generators that differ before the first calls."""

    values: frozenset[str]
    generators: frozenset[str]

    def without(self, other: OtherStart) -> OtherStart:
        """Returns the names that ``other`` does not have."""
        return OtherStart(self.values - other.values, self.generators - other.generators)


class Workers:
    """Starts the processes of a program, each with its own folder in ``folder``."""

    def __init__(self, program: UserProgram, folder: Path, library: Library, server: ForkServerProcess) -> None:
        self._program = program
        self._folder = folder
        self._library = library
        self._server = server
        self._numbers = itertools.count(1)
        self._started: list[Worker] = []
        self._interrupted = threading.Event()

    def on(self, placement: Placement) -> Workers:
        """Returns those of another device."""
        found = copy.copy(self)
        found._program = self._program.on(placement)
        return found

    def start(self, change: ProgramChange, cache_of: Worker | None = None) -> Worker:
        """Starts a process of the program with a change. It has the compiler caches of another one, if one is given.
        Threads may call it.
        """
        folder = self._folder / f"worker{next(self._numbers)}"
        cache = None if cache_of is None else cache_of.folder
        worker = Worker(self._program, change, folder, cache, server=self._server)
        self._started.append(worker)
        if self._interrupted.is_set():
            worker.interrupt()
        return worker

    def interrupt(self) -> None:
        """Ends all processes that were started or will be, on any device."""
        self._interrupted.set()
        for worker in self._started:
            worker.interrupt()

    def compile(self, worker: Worker, change: ProgramChange) -> CompiledProgram:
        """Runs the calls compiled. Raises WorkerError."""
        run = worker.ask(run_compiled(worker)).run
        if run is None:
            raise WorkerError("the calls were not compiled")
        texts = {
            (path, number): line
            for path, after in change.texts.items()
            for number, line in enumerate(after.split("\n"), 1)
        }
        explanation, processes = explained(worker, self._library, texts)
        return CompiledProgram(explanation, _metrics(explanation, run), observations_of(processes))


@dataclass(frozen=True, slots=True)
class Original:
    """The two processes of the unchanged program. ``wavering`` holds what already differs between them before the first
    calls. ``further`` are devices on which it can run as well, and ``keep_open`` keeps a process until all is done.
    """

    workers: Workers
    first: Worker
    second: Worker
    about: Description
    starts: Sequence[StateDigests]
    wavering: OtherStart
    values: SavedValues
    compiled: CompiledProgram
    further: tuple[Placement, ...]
    keep_open: Callable[[Worker], Worker]

    def other_start(self, worker: Worker) -> OtherStart:
        """Returns what differs in a worker before the first calls.

        Values do not count if the first calls overwrite them, here and there, without reading them.
        """
        found = _other_start(self.starts, worker.ask(DigestStart())).without(self.wavering)
        overwritten = frozenset(found.values)
        for one in (self.second, worker):
            if overwritten:
                overwritten &= {*one.ask(FindOverwritten(tuple(sorted(overwritten))))}
        return found.without(OtherStart(overwritten, frozenset()))


@contextlib.contextmanager
def running_original(
    program: UserProgram, folder: Path, library: Library, say: Say, devices: str | None = None
) -> Iterator[Original]:
    """Starts the program in ``folder``, which is new, on the first one of ``devices``, which are those of
    ``--devices``. Raises NothingToMeasure, WorkerError and DeviceError.
    """
    unchanged = ProgramChange()
    say(MeasuringStep.RUN, None)
    with contextlib.ExitStack() as stack:
        server = stack.enter_context(ForkServerProcess())
        # The server imports torch meanwhile.
        placement, *further = placements(devices)
        workers = Workers(program.on(placement), folder, library, server)
        first = stack.enter_context(workers.start(unchanged))
        # The time that it takes to compile is measured in the first one alone.
        second = stack.enter_context(workers.start(unchanged, first))
        about = first.ready()
        require_calls(about)
        require_one_device(about, placement)
        second.ready()
        starts = first.ask(DigestStart())
        wavering = _other_start(starts, second.ask(DigestStart()))
        values = SavedValues(first)
        say(MeasuringStep.COMPILE, None)
        compiled = workers.compile(first, unchanged)
        yield Original(
            workers,
            first,
            second,
            about,
            starts,
            wavering,
            values,
            compiled,
            tuple(one for one in further if one is not None),
            stack.enter_context,
        )


def _other_start(own: Sequence[StateDigests], other: Sequence[StateDigests]) -> OtherStart:
    values: set[str] = set()
    generators: set[str] = set()
    for mine, its in zip(own, other, strict=False):
        values |= _differing(mine.values, its.values)
        generators |= _differing(mine.generators, its.generators)
    return OtherStart(frozenset(values), frozenset(generators))


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
