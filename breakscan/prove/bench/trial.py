"""Runs a program in one variant, and measures it."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NoReturn

from breakscan.explain.explanation import Explanation
from breakscan.prove.bench.best import pays_after
from breakscan.prove.bench.dynamo_alone import first_cause, is_over_limit
from breakscan.prove.bench.eager_baseline import LONGEST, EagerBaseline
from breakscan.prove.bench.progress import BenchProgress
from breakscan.prove.bench.result import BenchRow, MeasurementStatus, Problem, Variant
from breakscan.prove.bench.step_time import compile_in, pace_of, prepare
from breakscan.prove.worker.baseline import run_compiled
from breakscan.prove.worker.compiled_code import explained, kernels_of_step
from breakscan.prove.worker.devices import Placement
from breakscan.prove.worker.observation import Observation, ObservationKind
from breakscan.prove.worker.progress import MeasuringStep
from breakscan.prove.worker.protocol import CompiledResult, CountLaunches, Description, RegionalCompile, Stage, StepKind
from breakscan.prove.worker.timing import Unsteady
from breakscan.prove.worker.worker import ProgramChange, Worker, WorkerError
from breakscan.record.records import CompileTimed, Record

Say = Callable[[BenchProgress], None]

STAGES = ("dynamo", "aot_autograd", "inductor")
"""The stages of compiling. Each runs within the one before it."""


@dataclass(frozen=True, slots=True)
class Tried:
    """A row, the folder of its process, and the recorded explanation if there is one."""

    row: BenchRow
    folder: Path
    explanation: Explanation | None = None


class _Stopped(Exception):
    """A variant is not measured further."""


class Trial:
    """Measures one variant in a separate process, in two steps. ``folder`` is new, ``say`` is called with the progress,
    ``placement`` is the device.

    The row records any failure, after which the process has ended and is not timed.
    """

    def __init__(
        self,
        variant: Variant,
        baseline: EagerBaseline,
        folder: Path,
        say: Callable[[MeasuringStep], None],
        placement: Placement | None,
    ) -> None:
        self.placement = placement
        self.row = BenchRow(variant, MeasurementStatus.MEASURED, device=placement.label if placement else None)
        self.tried: Tried | None = None
        """What :meth:`time` returned, unless it was interrupted."""
        self.explanation: Explanation | None = None
        self.lacked_memory = False
        """Whether it failed and may not have failed with more memory."""
        self._baseline = baseline
        self._say = say
        self._folder = folder
        self._worker: Worker | None = None
        self._interrupted = False

    def compile(self) -> None:
        """Runs the program, compiles its calls, compares their results, and compiles again what will be timed. A thread
        may do so.
        """
        change, baseline = ProgramChange({}, self.row.variant.settings), self._baseline
        with self._recorded():
            self._say(MeasuringStep.RUN)
            program = baseline.program.on(self.placement)
            self._worker = worker = Worker(program, change, self._folder, server=baseline.server)
            if self._interrupted:
                raise _Stopped
            self._compile(worker)

    def time(self) -> Tried:
        """Times what was compiled, once. The process goes on. A thread may do so."""
        if self.tried is not None:
            return self.tried
        if self._worker is not None:
            with self._recorded():
                self._say(MeasuringStep.TIME)
                self._time(self._worker)
        tried = Tried(self.row, self._folder, self.explanation)
        if not self._interrupted:
            self.tried = tried
        return tried

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
        self._require_comparable(about)
        if problem := self._baseline.not_taken(worker):
            self._stop(MeasurementStatus.FAILED, Stage.RUN_TIME, problem)
        compile_in(worker, self.row.variant)
        self._say(MeasuringStep.COMPILE)
        result = None
        try:
            result = worker.ask(run_compiled(worker, patient=False))
        finally:
            self.explanation = self._explain(worker, result)
        if result.failure is not None:
            self.lacked_memory = result.failure.out_of_memory
            self._stop(MeasurementStatus.FAILED, result.failure.stage, _error(result.failure.text))
        self._require_steady(self.explanation, result)
        unlike = self._baseline.unlike(worker)
        if unlike:
            observation = Observation(ObservationKind.DIFFERS, details=(unlike[0],))
            self._fail(MeasurementStatus.DIFFERS, Stage.RESULTS, observation)
        prepare(worker)

    def _require_comparable(self, about: Description) -> None:
        for kind, names in (
            (ObservationKind.UNKNOWN_SETTINGS, about.run.unknown_settings),
            (ObservationKind.PROGRAM_SETS, about.run.lost_settings),
        ):
            if names:
                self._stop(MeasurementStatus.SKIPPED, Stage.NOT_RUN, Observation(kind, names=names))
        if other := self._baseline.other_than(about):
            self._stop(MeasurementStatus.FAILED, Stage.RUN_TIME, other)
        if about.warm_cache:
            self._baseline.note(Observation(ObservationKind.CACHE_OF_PROGRAM))

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
                cold_seconds=run.cold_seconds,
                cold_steps=run.cold_calls / run.callables,
            )
        return explanation

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
        self._baseline.steps.extend(pace.eager)
        row = replace(
            self.row,
            processes=1,
            step_seconds=pace.step_seconds,
            ratio=pace.ratio,
            memory_bytes=pace.memory_bytes,
            launches=worker.ask(CountLaunches(StepKind.COMPILED)),
        )
        differs = row.status is MeasurementStatus.DIFFERS
        self.row = replace(row, pays_after_calls=None if differs else pays_after(row, self._baseline.same))

    def _fail(self, status: MeasurementStatus, stage: Stage, observation: Observation) -> None:
        self.row = replace(self.row, status=status, problem=Problem(stage, observation))

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
