"""The unchanged program, in two processes that keep running: the first gives its values to all others, whose eager
results are compared with its own; the second shows how much two processes differ."""

import contextlib
import os
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from breakscan.explanation.explanation import Explanation
from breakscan.explanation.from_processes import explain_processes
from breakscan.explanation.function_values import observations_of
from breakscan.model.observations import Observations
from breakscan.prove.call_runs import LONG, CallRuns, Compared, CompiledResult, Reference
from breakscan.prove.compiled_parts import CompiledParts
from breakscan.prove.equal import MEMORY, NOTED, STRUCTURE, Change, Noise, Part, ResultDifference
from breakscan.prove.observation import Observation, ObservationKind, other_calls, require_calls
from breakscan.prove.proof import Metrics
from breakscan.prove.protocol import CallStart, Description, TimedStep
from breakscan.prove.state import INPUTS, shape_of
from breakscan.prove.step_timer import StepTimer
from breakscan.prove.worker import UNCHANGED, Candidate, Worker, WorkerError, Workers
from breakscan.recording.recording import compiled, read_recording
from breakscan.recording.records import ExportEnded, PlainCallsRan, Record
from breakscan.rulebook.document import Rule
from breakscan.source.paths import display_path
from breakscan.source.source_files import SourceFiles


def explained(
    worker: Worker, rules: Iterable[Rule], texts: Mapping[str, str]
) -> tuple[Explanation, Sequence[Sequence[Record]]]:
    """The explanation of a worker's records until now, and these; ``texts`` are those of changed files by path."""
    # A program may call only what is not compiled, or export alone.
    all_ = read_recording(worker.folder / "recording")
    others = PlainCallsRan, ExportEnded
    processes = [one for one in all_ if compiled(one) or any(isinstance(it, others) for it in one)]
    cwd = os.getcwd()
    files = SourceFiles.trusted()
    files.know({(path, at): line for path, text in texts.items() for at, line in enumerate(text.split("\n"), 1)})
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


def counts_of(explanation: Explanation) -> dict[str, Any]:
    """The counts of :class:`.Metrics`."""
    return {
        "breaks": explanation.break_events,
        "recompiles": len(explanation.recompiles),
        "graphs": len(explanation.graphs),
        "eager_frames": explanation.eager_frames,
    }


@dataclass(frozen=True, slots=True)
class CompiledProgram:
    """The result of compiling the captured calls in a worker."""

    explanation: Explanation
    metrics: Metrics
    observations: Observations
    """The values of its functions."""
    result: CompiledResult


NOT_TRIED = (ObservationKind.NOT_LOADED, ObservationKind.UNKNOWN_SETTINGS, ObservationKind.SETTINGS_LOST)


NUDGES = 8
"""Runs with other last digits: an element near a step is moved to its other side in a third of them, or more."""


class Original:
    """The two processes of the unchanged program, and the results of its calls, run eager with the values of the first.

    ``unrepeatable`` is the first result that does not repeat itself in further runs, or the first value that the second
    process does not take over.  ``unlike`` are Python numbers and texts of results that do not, such as a time: they
    are not compared.  ``prints_same`` says that the calls print the same each time.  ``is_long``: they take so long
    that not all are repeated.  Further ``processes`` end with these two."""

    def __init__(
        self, workers: Workers, first: Worker, second: Worker, about: Description, processes: contextlib.ExitStack
    ) -> None:
        self.workers = workers
        self.processes = processes
        self.first = first
        self.second = second
        self.about, self._about_second = about, second.ready()
        self.prints_same = True
        self._nudged = 0
        self.unrepeatable: str | ResultDifference | None = None
        self.unlike: dict[tuple[Part, str], ResultDifference] = {}
        self._values = str(first.folder / "values.pt")
        first.ask(CallRuns.save, self._values)
        self.reference = self.eager_reference = Reference(str(first.folder / "expected.pt"))
        """The second has the noise of eager runs alone."""
        problems = self.hand_over(second)
        with ThreadPoolExecutor(1) as pool:
            again = pool.submit(second.ask, CallRuns.eager, {})
            self.run = first.ask(CallRuns.reference, self.reference.path)
            again.result()
        if self.run.outside:
            # Files and the like show what a process did if no other one runs.
            workers.wait_ahead()
            self.run = first.ask(CallRuns.reference, self.reference.path)
            second.ask(CallRuns.eager, {})
        self.is_long = self.run.first_seconds > LONG
        if problems:
            self.unrepeatable = problems[0]
            return
        self._note_repeated(second.ask(CallRuns.compare, self.reference))
        if self.reference.noise:
            # One run may come close by chance.
            first.ask(CallRuns.eager, {})
            self._note_repeated(first.ask(CallRuns.compare, self.reference))
            if (exact := self._exact(second)) is not None:
                self._add(exact.distances)
        self.eager_reference = self.reference

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
        return self.compile(self.first, UNCHANGED)

    @cached_property
    def compiled_differences(self) -> list[ResultDifference]:
        """The differences between its compiled and eager results, which are noise for others."""
        found, distances = self._differences(self.first, self.compiled.result)
        self._add(distances)
        return [one for one in found if one.change not in NOTED]

    def learns_noise(self) -> bool:
        """Compiles the unchanged program if it was not yet: how far that is from eager is noise.  Returns whether it
        was not."""
        is_new = "compiled_differences" not in vars(self)
        return is_new and self.compiled_differences is not None

    @property
    def notes(self) -> list[Observation]:
        """Remarks on the comparison."""
        notes = []
        if self.run.no_exact is not None:
            notes.append(Observation(ObservationKind.NO_EXACT, self.run.no_exact))
        if names := tuple(path for part, path in self.unlike if part is not Part.OUTSIDE):
            notes.append(Observation(ObservationKind.VARIES, names=names))
        return notes

    def hand_over(self, worker: Worker, changed: bool = False) -> tuple[str, ...]:
        """Gives the values to a worker. Returns those that it cannot take over; of a ``changed`` program, whose state
        may have another form, those of inputs."""
        problems = worker.ask(CallRuns.take, self._values)
        return tuple(one for one in problems if one.startswith(INPUTS)) if changed else problems

    def compile(self, worker: Worker, candidate: Candidate) -> CompiledProgram:
        """Runs the calls compiled. Raises WorkerError."""
        worker.compile_as(candidate)
        result = self.run_compiled(worker)
        texts = {path: after for path, (_, after) in candidate.texts.items()}
        explanation, processes = explained(worker, self.workers.library, texts)
        metrics = Metrics(
            **counts_of(explanation),
            kernels=kernels_of_step(explanation, result.calls_each),
            compile_seconds=explanation.compile_seconds,
            first_call_seconds=result.first_call_seconds,
        )
        return CompiledProgram(explanation, metrics, observations_of(processes), result)

    def run_compiled(self, worker: Worker, patient: bool = True) -> CompiledResult:
        """Runs the calls of a worker compiled."""
        return worker.ask(CallRuns.compiled, self.reference, patient, self.is_long)

    def eager_differences(self, worker: Worker, moves: bool | None = None) -> Compared:
        """Compares the last eager run of a worker. ``moves``: its results may have their parts at other places."""
        return self._comparable(worker.ask(CallRuns.compare, self.reference, moves))

    def exact_differences(self, worker: Worker) -> tuple[ResultDifference, ...] | None:
        """The differences of a worker of a changed program in higher precision; None if not both can be run in it."""
        compared = self._exact(worker)
        return None if compared is None else self._comparable(compared).differences

    def know_rounding(self) -> None:
        """Adds to the noise how far the last digit of the inputs moves the results, as if an element is on the other
        side of a step."""
        for seed in range(self._nudged, NUDGES):
            self._add(self.second.ask(CallRuns.nudged, self.reference, seed + 1, self.is_long))
            self._nudged = seed + 1

    def differences(self, worker: Worker, result: CompiledResult) -> list[ResultDifference]:
        """The differences of compiled results of a changed program."""
        return [one for one in self._differences(worker, result)[0] if one.change not in MEMORY]

    def differences_of_part(self, found: Compared, same_random: bool) -> list[ResultDifference]:
        """The differences where a part was compiled; with ``same_random``, random numbers are those of eager code."""
        kept = set(Change) if same_random or not self.run.random else STRUCTURE
        differences = self._comparable(found).differences
        return [one for one in differences if one.change in kept and one.change not in NOTED]

    def _differences(self, worker: Worker, result: CompiledResult) -> tuple[list[ResultDifference], list[Noise]]:
        """The differences between compiled and eager results, at the first calls and after a row of calls.  Inductor
        draws other random numbers than eager code: where any are drawn, a run in which it draws the same ones is
        compared.  Also returns how far values are apart."""
        compared = [self._comparable(one) for one in result.compared]
        found = [difference for one in compared for difference in one.differences]
        if self.run.random:
            _, run = worker.ask(CompiledParts.run, self.reference, None, {"fallback_random": True}, None)
            compared = [self._comparable(run)]
            found = [*(one for one in found if one.change in STRUCTURE), *compared[0].differences]
        return found, [distance for one in compared for distance in one.distances]

    def _add(self, distances: Iterable[Noise]) -> None:
        self.reference = replace(self.reference, noise=(*self.reference.noise, *distances))

    def _note_repeated(self, compared: Compared) -> None:
        self._add(compared.distances)
        self.prints_same = self.prints_same and compared.printed is None
        for one in compared.unlike:
            self.unlike.setdefault((one.part, one.path), one)
        self.unrepeatable = self.unrepeatable or next(iter(compared.varying), None)

    def _comparable(self, compared: Compared) -> Compared:
        differences = tuple(one for one in compared.differences if (one.part, one.path) not in self.unlike)
        return replace(compared, differences=differences)

    def _exact(self, worker: Worker) -> Compared | None:
        """Compares a worker in higher precision, if both can be run in it."""
        return None if self.run.no_exact is not None else worker.ask(CallRuns.exact, self.reference, self.run.double)

    def incomparable(self, worker: Worker, about: Description, candidate: Candidate) -> Observation | None:
        """Gives a worker of a candidate the values of the first one. Returns why it cannot be compared, or why the
        candidate was not tried: a kind that is in :data:`NOT_TRIED`."""
        if about.error and about.error != self.about.error:
            return Observation(ObservationKind.FAILS_WITH_CHANGE, about.error)
        if other := other_calls(about, self.about):
            return Observation(ObservationKind.OTHER_CALLS, other)
        missing = tuple(display_path(path, os.getcwd()) for path in candidate.texts if path not in about.loaded)
        for kind, names in zip(NOT_TRIED, (missing, about.unknown_settings, about.lost_settings), strict=True):
            if names:
                return Observation(kind, names=names)
        problems = self.hand_over(worker, changed=True)
        return Observation(ObservationKind.OTHER_VALUES, details=tuple(problems)) if problems else None

    def other_start(self, about: Description) -> CallStart:
        """The differences in a worker before the first calls, without those that are there between the two."""
        both = zip(self.about.callables, self._about_second.callables, about.callables, strict=False)
        starts = ([each.start for each in alike] for alike in both)
        return {
            key: its[key]
            for one, other, its in starts
            for key, value in one.items()
            if other.get(key, value) == value != its.get(key, value)
        }

    def other_units(self, candidate: Candidate, about: Description) -> tuple[tuple[str, str], ...]:
        """The places of the callables of this program, if a change compiles others; empty if not all have one."""
        units = tuple(one.place for one in self.about.callables if one.place is not None)
        can_ask = candidate.texts and not about.error and not self.workers.program.requests.compile
        is_all = len(units) == len(self.about.callables)
        return units if can_ask and is_all and other_calls(about, self.about) is not None else ()

    def other_forms(self, about: Description) -> set[str]:
        """The attributes that not both have before the first calls, or that hold values of another shape."""
        both = zip(self.about.callables, about.callables, strict=False)
        return {name for own, its in both for name, _ in _forms(own.start) ^ _forms(its.start)}


def _forms(start: CallStart) -> set[tuple[str, str]]:
    """The attributes of modules and of the object whose method is called, with the shapes of their values; a number is
    a tensor without dimensions.  What code names may be there without it."""
    return {
        (name, text.rpartition(" ")[2] if kind == "values" else text if text == "None" else shape_of(()))
        for (kind, name), text in start.items()
        if kind != "generators"
        and (name.startswith("self.") or ("plains", f"{name.rpartition('.')[0]}.state_dict()") in start)
    }


def probing(texts: Mapping[str, tuple[str, str]]) -> Candidate:
    """The unchanged program as a change: its process records what of the old texts runs."""
    return Candidate("", texts={path: (before, before) for path, (before, _) in texts.items()})


@contextlib.contextmanager
def running_original(workers: Workers, ahead: Candidate | None = None) -> Iterator[Original]:
    """Starts the unchanged program, and a change ``ahead`` of its proof, with what probes it.  Raises NothingToMeasure
    and WorkerError."""
    with contextlib.ExitStack() as stack:
        # The time that it takes to compile is measured in the first one alone.
        first = stack.enter_context(workers.start(UNCHANGED))
        second = stack.enter_context(workers.start(UNCHANGED, first))
        about = first.ready()
        require_calls(about)
        its = second.ready()
        if its.error != about.error or other_calls(its, about):
            # Both may have made the same file: no two programs run at once.
            ahead = None
            second = stack.enter_context(workers.start(UNCHANGED, first))
            second.ready()
        if "cuda" not in about.devices:
            workers.server.check_compiler()
        # A GPU may not have the memory for one more.
        probed = ahead is not None and ahead.texts and "cuda" not in about.devices
        for one in () if ahead is None else (ahead, probing(ahead.texts))[: 1 + bool(probed)]:
            probes = one is not ahead
            workers.ahead.append((one, probes, stack.enter_context(workers.start(one, probes=probes))))
        original = Original(workers, first, second, about, stack)
        # They take no core from what is compiled next.
        workers.wait_ahead()
        yield original
