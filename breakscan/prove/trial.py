"""Runs a program eager, and in one variant after another, and measures it."""

from __future__ import annotations

import contextlib
import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import NoReturn

from breakscan.explanation.explanation import Explanation
from breakscan.prove import faster as measure
from breakscan.prove.bench_result import BenchProblem, BenchRow, Eager, MeasurementStatus, pays_after
from breakscan.prove.call_runs import CallRuns, CompiledResult
from breakscan.prove.candidate import Candidate, MeasuringProgress, MeasuringStep, Say
from breakscan.prove.commands import CommandHandler
from breakscan.prove.equal import ResultDifference
from breakscan.prove.faster import PROCESSES, Pace, Unsteady, pace_of
from breakscan.prove.fork_server import DYNAMO, INDUCTOR
from breakscan.prove.observation import Observation, ObservationKind
from breakscan.prove.original import NOT_TRIED, Original, compile_as, explained, kernels_of_step
from breakscan.prove.protocol import (
    CompileOption,
    RegionalCompile,
    Stage,
    StepKind,
)
from breakscan.prove.step_timer import StepTimer
from breakscan.prove.variants import Choices
from breakscan.prove.worker import Worker, WorkerError, run_all
from breakscan.recording.records import CompileTimed, Record
from breakscan.source.cores import CORES_TO_COMPILE, usable_cores

LONGEST = 8.0
"""Seconds of timing."""

Plan = Callable[[Choices], Sequence[Mapping[str, CompileOption]]]
"""A function that chooses the keyword arguments of ``torch.compile`` for each variant."""


class EagerBaseline:
    """The results and times of eager runs.

    ``steps`` are the seconds of eager steps; those of later processes are added. ``resolved`` says what
    ``torch.compile`` makes of the keyword arguments of each variant.
    """

    def __init__(self, original: Original, plan: Plan, say: Say) -> None:
        """Raises WorkerError, and what ``plan`` raises."""
        first, second = original.first, original.second
        self.original = original
        self.about = original.about
        self.choices = Choices(second.ask(CommandHandler.choices), "cuda" in self.about.devices)
        planned = tuple(dict(options) for options in plan(self.choices))
        self.resolved = second.ask(CommandHandler.resolve, planned)
        say(MeasuringProgress(MeasuringStep.TIME))
        original.time_alike(second)
        rounds = measure.race({"eager": first, "same": second}, StepKind.EAGER, LONGEST)
        self.same = rounds.ratio("same", "eager")
        self.steps = list(chain(*rounds.seconds.values()))
        self.host_bytes = first.host_bytes
        self.memory_bytes = first.ask(StepTimer.memory, StepKind.EAGER)
        self.free_device_bytes = first.ask(CommandHandler.free_memory)
        self._launches: Mapping[str, int] | None = None
        with contextlib.suppress(WorkerError):
            self._launches = first.ask(StepTimer.launches, StepKind.EAGER)
        self.notes = original.notes
        if original.unrepeatable is not None:
            self.note(Observation(ObservationKind.NOT_COMPARED, details=(original.unrepeatable,)))

    @property
    def eager(self) -> Eager:
        """Returns the measurements of eager runs so far."""
        return Eager(self.original.run.first_seconds, statistics.median(self.steps), self.memory_bytes, self._launches)

    def unlike(self, worker: Worker, result: CompiledResult) -> list[ResultDifference]:
        """Returns how the compiled results of a worker differ from eager ones."""
        return [] if self.original.unrepeatable else self.original.differences(worker, result)

    def note(self, observation: Observation) -> None:
        """Adds a note, unless it was added before."""
        if observation not in self.notes:
            self.notes.append(observation)


def trace_alone(
    variant: Candidate, baseline: EagerBaseline, started: Callable[[Worker], None] = lambda _: None
) -> Explanation | None:
    """Runs the calls of a variant with Dynamo alone. ``started`` is given the process.

    Returns None if that shows nothing, as it fails or has other calls or values: compiling the variant shows how.
    """
    if baseline.choices.own is None:
        # Its callables are compiled in different ways.
        return None
    options = variant.options if variant.options is not None else baseline.choices.kept
    alone = replace(variant, options={**options, "backend": "eager"})
    try:
        with baseline.original.workers.start(variant) as worker:
            started(worker)
            if baseline.original.incomparable(worker, worker.ready(), variant):
                return None
            compile_as(worker, alone)
            result = worker.ask(CallRuns.compiled, None, False)
            return None if result.failure is not None else explained(worker, (), {})[0]
    except WorkerError:
        return None


def captures_more(explanation: Explanation, than: Explanation) -> bool:
    """Return True if there are fewer breaks, or fewer functions that run eager, than in another run."""
    return explanation.break_events < than.break_events or explanation.eager_frames < than.eager_frames


def is_over_limit(explanation: Explanation) -> bool:
    """Return True if a function was compiled again until torch fell back to eager."""
    return any(frame.over_limit for frame in explanation.frames)


def first_cause(explanation: Explanation) -> str:
    """Returns what changes from one compilation to the next, empty if nothing is compiled again."""
    return next((one.subject for one in explanation.recompiles), "")


def unsteady_row(variant: Candidate, explanation: Explanation) -> BenchRow:
    """Returns the row of a variant that is compiled again until torch falls back to eager."""
    cause = Observation(ObservationKind.RECOMPILES_TO_LIMIT, first_cause(explanation))
    return _row(variant, MeasurementStatus.UNSTEADY, BenchProblem(Stage.RECOMPILING, cause), explanation)


def useless_row(variant: Candidate, explanation: Explanation) -> BenchRow:
    """Returns the row of a variant whose settings remove no break."""
    problem = BenchProblem(Stage.NOT_RUN, Observation(ObservationKind.REMOVES_NO_BREAK))
    return _row(variant, MeasurementStatus.SKIPPED, problem, explanation)


def _row(variant: Candidate, status: MeasurementStatus, problem: BenchProblem, explanation: Explanation) -> BenchRow:
    return BenchRow(
        variant,
        status,
        problem,
        breaks=explanation.break_events,
        recompiles=len(explanation.recompiles),
        graphs=len(explanation.graphs),
        eager_frames=explanation.eager_frames,
    )


STAGES = ("dynamo", "aot_autograd", "inductor")
"""The stages of compiling. Each runs within the one before it."""


class _Stopped(Exception):
    """A variant is not measured further."""


class Trial:
    """Measures one variant in a separate process, in two steps. ``say`` is called with the progress.

    The row records any failure, after which the process has ended and is not timed.
    """

    def __init__(self, variant: Candidate, baseline: EagerBaseline, say: Callable[[MeasuringStep], None]) -> None:
        self.row = BenchRow(variant, MeasurementStatus.MEASURED)
        self.is_done = False
        """True if it was timed, or failed, and was not interrupted."""
        self.explanation: Explanation | None = None
        self.lacked_memory = False
        """True if it failed and may not have failed with more memory."""
        self.started: Worker | None = None
        """Its process, also when that has ended."""
        self._baseline = baseline
        self._say = say
        self._worker: Worker | None = None
        self._interrupted = False

    def compile(self) -> None:
        """Runs the program, compiles its calls, compares their results, and compiles again what will be timed. A thread
        may do so.
        """
        with self._recorded():
            self._say(MeasuringStep.RUN)
            self.started = self._worker = worker = self._baseline.original.workers.start(self.row.variant)
            if self._interrupted:
                raise _Stopped
            self._compile(worker)

    def time(self) -> None:
        """Times what was compiled, once. The process goes on. A thread may do so."""
        if self.is_done:
            return
        if self._worker is not None:
            with self._recorded():
                self._say(MeasuringStep.TIME)
                self._time(self._worker)
        self.is_done = not self._interrupted

    def interrupt(self) -> None:
        """Makes :meth:`compile` or :meth:`time` end early in another thread."""
        self._interrupted = True
        worker = self._worker
        if worker is not None:
            worker.interrupt()

    def end(self) -> None:
        """Ends the process, if there is one."""
        self._end(None)

    @contextlib.contextmanager
    def _recorded(self) -> Iterator[None]:
        try:
            yield
        except _Stopped:
            self._end(None)
        except WorkerError as error:
            self._fail(MeasurementStatus.FAILED, error.stage or Stage.RUN_TIME, _error(error.first_line))
            self.lacked_memory = error.for_memory
            self._end(None)
        except BaseException as error:
            self._end(type(error))
            raise

    def _end(self, kind: type[BaseException] | None) -> None:
        worker, self._worker = self._worker, None
        if worker is not None:
            worker.__exit__(kind)

    def _compile(self, worker: Worker) -> None:
        about = worker.ready()
        if problem := self._baseline.original.incomparable(worker, about, self.row.variant):
            if problem.kind in NOT_TRIED:
                self._stop(MeasurementStatus.SKIPPED, Stage.NOT_RUN, problem)
            self._stop(MeasurementStatus.FAILED, Stage.RUN_TIME, problem)
        if about.warm_cache:
            self._baseline.note(Observation(ObservationKind.CACHE_OF_PROGRAM))
        compile_as(worker, self.row.variant)
        self._say(MeasuringStep.COMPILE)
        result = None
        try:
            result = self._baseline.original.run_compiled(worker, patient=False)
        finally:
            self.explanation = self._explain(worker, result)
        if result.failure is not None:
            self.lacked_memory = result.failure.out_of_memory
            self._stop(MeasurementStatus.FAILED, result.failure.stage, _error(result.failure.text))
        self._require_steady(self.explanation, result)
        if unlike := self._baseline.unlike(worker, result):
            # Its time cannot be compared with that of code that computes something else.
            observation = Observation(ObservationKind.DIFFERS, details=(unlike[0],))
            self._stop(MeasurementStatus.DIFFERS, Stage.RESULTS, observation)
        self._baseline.original.time_alike(worker)
        worker.ask(StepTimer.prepare, StepKind.COMPILED)

    def _explain(self, worker: Worker, result: CompiledResult | None) -> Explanation:
        """Returns what was recorded, also for failed runs."""
        explanation, processes = explained(worker, (), {})
        stages = _stages(processes)
        if result is None and not stages["total"]:
            # The process ended before anything was recorded.
            return explanation
        self.row = replace(
            self.row,
            breaks=explanation.break_events,
            recompiles=len(explanation.recompiles),
            graphs=len(explanation.graphs),
            eager_frames=explanation.eager_frames,
            compile_seconds=stages,
        )
        # A region that runs several times within a graph is in its code once.
        is_nested = self.row.variant.regional is RegionalCompile.NESTED
        if result is not None and (run := result.run) is not None:
            self.row = replace(
                self.row,
                kernels={} if is_nested else kernels_of_step(explanation, run.calls_each),
                first_call_seconds=run.first_call_seconds,
                compiling_seconds=run.compiling_seconds,
                startup_seconds=self._startup(),
                busy=run.busy,
            )
            if run.busy:
                self._baseline.note(Observation(ObservationKind.BUSY))
        return explanation

    def _startup(self) -> float:
        """The seconds of the import of the parts of the compiler that the variant needs."""
        stages = self._baseline.original.workers.server.startup_seconds
        parts = (DYNAMO, INDUCTOR) if "inductor" in self.row.compile_seconds else (DYNAMO,)
        return sum(stages.get(part, 0.0) for part in parts)

    def _require_steady(self, explanation: Explanation, result: CompiledResult) -> None:
        if is_over_limit(explanation):
            self._stop_recompiling(explanation, ObservationKind.RECOMPILES_TO_LIMIT)
        if result.run is not None and result.run.endless:
            self._stop_recompiling(explanation, ObservationKind.RECOMPILES_EACH_CALL)

    def _stop_recompiling(self, explanation: Explanation, kind: ObservationKind) -> NoReturn:
        self._stop(MeasurementStatus.UNSTEADY, Stage.RECOMPILING, Observation(kind, first_cause(explanation)))

    def _time(self, worker: Worker) -> None:
        assert self.explanation is not None
        try:
            pace = pace_of(worker, LONGEST, self._baseline.same)
        except Unsteady as error:
            if error.name == StepKind.EAGER:
                self._stop(MeasurementStatus.FAILED, Stage.RUN_TIME, Observation(ObservationKind.COMPILES_WHILE_EAGER))
            self._stop_recompiling(self.explanation, ObservationKind.RECOMPILES_WHILE_TIMED)
        self._baseline.steps.extend(pace.rounds.seconds[StepKind.EAGER])
        row = replace(
            self.row,
            processes=1,
            step_seconds=pace.step_seconds,
            ratio=pace.ratio,
            memory_bytes=pace.memory_bytes,
            launches=worker.ask(StepTimer.launches, StepKind.COMPILED),
        )
        self.row = replace(row, pays_after_calls=pays_after(row, self._baseline.same))

    def _fail(self, status: MeasurementStatus, stage: Stage, observation: Observation) -> None:
        self.row = replace(self.row, status=status, problem=BenchProblem(stage, observation))

    def _stop(self, status: MeasurementStatus, stage: Stage, observation: Observation) -> NoReturn:
        """Raises _Stopped."""
        self._fail(status, stage, observation)
        raise _Stopped


def _error(text: str) -> Observation:
    return Observation(ObservationKind.ERROR, text)


def _stages(processes: Sequence[Sequence[Record]]) -> dict[str, float]:
    """Returns the seconds of all compiles, and of each stage without the stages within it."""
    found = {"total": 0.0}
    for timed in (record for process in processes for record in process if isinstance(record, CompileTimed)):
        found["total"] += timed.seconds
        # A backward that is compiled later has only the last stage.
        whole = [timed.phases.get(stage, 0.0) for stage in STAGES]
        for stage, seconds, inner in zip(STAGES, whole, [*whole[1:], 0.0], strict=True):
            if seconds:
                found[stage] = found.get(stage, 0.0) + max(0.0, seconds - inner)
    return found


MOST = 4
"""Processes at the same time for each device: more cores would not be used, as the longest ones have to be waited for
anyway."""
DEVICE_MEMORY = 4
"""The multiple of the memory of an eager step that has to be on the device for each process."""
HOST_MEMORY = 2
"""Likewise for the memory of the machine."""


def at_once(baseline: EagerBaseline) -> int:
    """Returns how many variants of a program can be compiled at the same time. One means one after another."""
    limits = [MOST, usable_cores() // CORES_TO_COMPILE]
    if baseline.memory_bytes and baseline.free_device_bytes is not None:
        limits.append(baseline.free_device_bytes // (DEVICE_MEMORY * baseline.memory_bytes))
    free = _free_host_bytes()
    if free is None or not baseline.host_bytes:
        return 1
    return max(1, min(*limits, free // (HOST_MEMORY * baseline.host_bytes)))


def compile_all(
    trials: Sequence[Trial], count: int, also: Sequence[Callable[[], None]], workers: Sequence[Worker]
) -> None:
    """Compiles variants, ``count`` at a time, and does then what else can be done meanwhile, by these ``workers``. The
    processes of the variants go on.
    """
    run_all([*(trial.compile for trial in trials), *also], count, lambda: _interrupt_all([*trials, *workers]))


def _interrupt_all(running: Sequence[Trial | Worker]) -> None:
    for one in running:
        one.interrupt()


def end_all(trials: Sequence[Trial]) -> None:
    """Ends their processes, which takes a second or two for each: at the same time."""
    if trials:
        with ThreadPoolExecutor(len(trials)) as pool:
            list(pool.map(Trial.end, trials))


def _free_host_bytes() -> int | None:
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
    except OSError:
        return None
    line = next((line for line in lines if line.startswith("MemAvailable:")), None)
    return int(line.split()[1]) * 1024 if line else None


LONGEST_AGAIN = 4.0
"""Seconds for which each of the further processes is timed."""
FAR = 1.25
"""The ratio to eager steps from which a variant is slower in any further process, too."""


def is_worth_repeating(row: BenchRow) -> bool:
    """Returns whether further processes can show anything else than the first one."""
    return row.ratio is not None and row.ratio.high > 1 / FAR


def run_again(row: BenchRow, baseline: EagerBaseline, first: Worker, say: Say) -> BenchRow:
    """Returns the row with the measurements of all processes.

    ``first`` is the existing process. If another one fails, that is noted, and the row is not changed.
    """
    assert row.ratio is not None
    assert row.step_seconds is not None
    paces = []
    try:
        for number in range(2, PROCESSES + 1):
            say(MeasuringProgress(MeasuringStep.REPEAT, row.label, number, PROCESSES))
            paces.append(_pace(row, baseline, first))
    except (WorkerError, Unsteady) as error:
        text = error.first_line if isinstance(error, WorkerError) else "it is compiled again while it is timed"
        baseline.note(Observation(ObservationKind.ONE_PROCESS, text, (row.label,)))
        return row
    steps = [row.step_seconds, *(pace.step_seconds for pace in paces)]
    ratios = [row.ratio, *(pace.ratio for pace in paces)]
    row = replace(
        row,
        processes=PROCESSES,
        step_seconds=statistics.geometric_mean(steps),
        ratio=measure.ratio_of_processes(ratios),
    )
    return replace(row, pays_after_calls=pays_after(row, baseline.same))


def _pace(row: BenchRow, baseline: EagerBaseline, first: Worker) -> Pace:
    original = baseline.original
    with original.workers.start(row.variant, first) as worker:
        if original.incomparable(worker, worker.ready(), row.variant):
            raise WorkerError("it cannot be compared with the first one")
        original.time_alike(worker)
        compile_as(worker, row.variant)
        worker.ask(StepTimer.prepare, StepKind.COMPILED)
        pace = pace_of(worker, LONGEST_AGAIN, baseline.same)
    baseline.steps += pace.rounds.seconds[StepKind.EAGER]
    return pace
