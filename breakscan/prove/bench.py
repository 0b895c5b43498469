"""The pipeline of ``bench``: from a program to the measurements of each variant."""

from __future__ import annotations

import functools
import shutil
import statistics
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any, NoReturn

from breakscan.explanation.explanation import Explanation
from breakscan.prove import faster as measure
from breakscan.prove.bench_result import (
    OWN,
    Bench,
    BenchProblem,
    BenchRow,
    Eager,
    MeasurementStatus,
    best_of,
    pays_after,
)
from breakscan.prove.call_runs import CompiledResult
from breakscan.prove.candidate import Candidate, MeasuringProgress, MeasuringStep, Say
from breakscan.prove.equal import ResultDifference
from breakscan.prove.faster import PROCESSES, Ratio, Unsteady
from breakscan.prove.fork_server import DYNAMO, INDUCTOR, ForkServerProcess
from breakscan.prove.observation import Observation, ObservationKind, environment_of, notes_of
from breakscan.prove.original import (
    NOT_TRIED,
    Original,
    Workers,
    compile_as,
    explained,
    kernels_of_step,
    running_original,
)
from breakscan.prove.process import WorkerProcess
from breakscan.prove.protocol import Choices, Stage, StepKind
from breakscan.prove.step_timer import StepTimer
from breakscan.prove.variants import (
    WantedVariants,
    doubles,
    interrupted,
    planned,
    write_for,
)
from breakscan.prove.worker import UserProgram, Worker, WorkerError, interrupted_once
from breakscan.recording.records import CompileTimed, Record


def bench(program: UserProgram, wanted: WantedVariants, say: Say) -> Bench:
    """Runs the program several times, and writes nothing.

    ``say`` is called with the progress. SIGINT or SIGTERM ends the run, which returns what is measured until then.
    Raises NothingToMeasure if the program cannot be measured, WorkerError if it cannot be run, UnknownName if torch
    lacks a backend or mode that is asked for.
    """
    folder = Path(tempfile.mkdtemp(prefix="breakscan-bench-"))
    measured: _Variants | None = None

    was_interrupted = False
    try:
        with interrupted_once(), ForkServerProcess(folder / "server", eager=2) as server:
            say(MeasuringProgress(MeasuringStep.RUN))
            with running_original(Workers(program, folder, server)) as original:
                choices = original.second.ask(WorkerProcess.choices)
                variants = planned(wanted, choices)
                baseline = EagerBaseline(original, choices, say)
            measured = _Variants(baseline, variants, say)
            measured.run()
    except KeyboardInterrupt:
        was_interrupted = True
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    if measured is None:
        return Bench(program.argv, environment_of(None, None), {}, frozenset(), (), interrupted=was_interrupted)
    return measured.result(was_interrupted)


class _Variants:
    """Runs the variants of a program."""

    def __init__(self, baseline: EagerBaseline, variants: Sequence[Candidate], say: Say) -> None:
        self.say = say
        self.baseline = baseline
        self.variants = variants
        self.rows: list[BenchRow] = []
        self.device = ""
        self._started: dict[str, Worker] = {}
        """The first process of each variant, by label."""

    def run(self) -> None:
        """Tries all variants, then repeats those that matter."""
        self._try_all(doubles(self.variants, self.baseline.choices))
        self._run_again()

    def _try_all(self, skipped: Mapping[str, BenchRow]) -> None:
        for variant in self.variants:
            row = skipped.get(variant.name)
            if row is not None:
                self.rows.append(row)
                continue
            self._try(variant)

    def _try(self, variant: Candidate) -> None:
        measurement = _Measurement(variant, self.baseline, functools.partial(self._say, variant))
        measurement.run()
        self.rows.append(measurement.row)
        self._started[variant.name] = measurement.worker
        if measurement.explanation is not None:
            self.device = self.device or measurement.explanation.device or ""

    def _say(self, variant: Candidate, step: MeasuringStep) -> None:
        self.say(MeasuringProgress(step, variant.name, self.variants.index(variant) + 1, len(self.variants)))

    def _run_again(self) -> None:
        """Repeats the variants that the reader relies on in more processes: the program's own, and the one to choose.

        The variant to choose may change as a result.
        """
        done: set[str] = set()
        while True:
            best, _ = best_of(self.rows, self.baseline.same)
            wanted = {OWN, *([best.label] if best else [])} - done
            measured = [row for row in self.rows if row.status is MeasurementStatus.MEASURED]
            again = [row for row in measured if row.label in wanted and is_worth_repeating(row)]
            if not again:
                return
            for row in again:
                done.add(row.label)
                self.rows[self.rows.index(row)] = self._again(row)

    def _again(self, row: BenchRow) -> BenchRow:
        """Returns the row with the measurements of further processes.  If one fails, that is noted, and the row is not
        changed."""
        assert row.ratio is not None
        assert row.step_seconds is not None
        original, found = self.baseline.original, [(row.step_seconds, row.ratio)]
        try:
            for number in range(2, PROCESSES + 1):
                self.say(MeasuringProgress(MeasuringStep.REPEAT, row.label, number, PROCESSES))
                with original.workers.start(row.variant, self._started[row.label]) as worker:
                    if original.incomparable(worker, worker.ready(), row.variant):
                        raise WorkerError("it cannot be compared with the first one")
                    compile_as(worker, row.variant)
                    found.append(self.baseline.timed(worker, LONGEST_AGAIN))
        except (WorkerError, Unsteady) as error:
            text = error.first_line if isinstance(error, WorkerError) else "it is compiled again while it is timed"
            self.baseline.note(Observation(ObservationKind.ONE_PROCESS, text, (row.label,)))
            return row
        steps, ratios = zip(*found, strict=True)
        row = replace(
            row,
            processes=PROCESSES,
            step_seconds=statistics.geometric_mean(steps),
            ratio=measure.ratio_of_processes(ratios),
        )
        return replace(row, pays_after_calls=pays_after(row, self.baseline.same))

    def result(self, was_interrupted: bool) -> Bench:
        """Returns the measurements so far."""
        same, about = self.baseline.same, self.baseline.about
        best, as_fast = best_of(self.rows, same)
        done = {row.label for row in self.rows}
        left = [interrupted(variant) for variant in self.variants if variant.name not in done]
        callables = {one.name: one.calls for one in about.callables}
        return Bench(
            argv=self.baseline.original.workers.program.argv,
            environment=environment_of(about, self.device),
            callables=callables,
            backward=about.with_backward,
            rows=(*self.rows, *left),
            eager=self.baseline.eager,
            same=same,
            step=self.baseline.original.step,
            notes=(*notes_of(about), *self.baseline.notes),
            interrupted=was_interrupted,
            best=best.label if best else None,
            as_fast=tuple(row.label for row in as_fast),
            write=self._write(best),
        )

    def _write(self, row: BenchRow | None) -> str | None:
        """Returns the code to write for a variant."""
        if row is None:
            return None
        asked = bool(self.baseline.original.workers.program.requests.compile)
        return write_for(row, [one.name for one in self.baseline.about.callables], asked)


LONGEST = 8.0
"""Seconds of timing."""


class EagerBaseline:
    """The results and times of eager runs.

    ``steps`` are the seconds of eager steps; those of later processes are added.
    """

    def __init__(self, original: Original, choices: Choices, say: Say) -> None:
        """Raises WorkerError."""
        first, second = original.first, original.second
        self.original = original
        self.about = original.about
        self.choices = choices
        say(MeasuringProgress(MeasuringStep.TIME))
        original.time_alike(second)
        rounds = measure.race({"eager": first, "same": second}, StepKind.EAGER, LONGEST)
        self.same = rounds.ratio("same", "eager")
        self.steps = list(chain(*rounds.seconds.values()))
        self.memory_bytes = first.ask(StepTimer.memory, StepKind.EAGER)
        self.notes = original.notes
        if original.unrepeatable is not None:
            self.note(Observation(ObservationKind.NOT_COMPARED, details=(original.unrepeatable,)))

    @property
    def eager(self) -> Eager:
        """Returns the measurements of eager runs so far."""
        return Eager(self.original.run.first_seconds, statistics.median(self.steps), self.memory_bytes)

    def unlike(self, worker: Worker, result: CompiledResult) -> list[ResultDifference]:
        """Returns how the compiled results of a worker differ from eager ones."""
        return [] if self.original.unrepeatable else self.original.differences(worker, result)

    def timed(self, worker: Worker, longest: float) -> tuple[float, Ratio]:
        """The seconds of a compiled step of a worker, timed for so long at most, and its ratio to an eager one. Raises
        Unsteady and WorkerError."""
        self.original.time_alike(worker)
        rounds = measure.next_to_eager(worker, longest, self.same)
        self.steps += rounds.seconds[StepKind.EAGER]
        compiled = statistics.median(rounds.seconds[StepKind.COMPILED])
        return compiled, rounds.ratio(StepKind.COMPILED, StepKind.EAGER)

    def note(self, observation: Observation) -> None:
        """Adds a note, unless it was added before."""
        if observation not in self.notes:
            self.notes.append(observation)


def _counts(explanation: Explanation) -> dict[str, Any]:
    return {
        "breaks": explanation.break_events,
        "recompiles": len(explanation.recompiles),
        "graphs": len(explanation.graphs),
        "eager_frames": explanation.eager_frames,
    }


STAGES = ("dynamo", "aot_autograd", "inductor")
"""The stages of compiling. Each runs within the one before it."""


class _Stopped(Exception):
    """A variant is not measured further."""


class _Measurement:
    """Measures one variant in a process of its own.  ``say`` is called with the progress.  The row records any failure.

    ``worker`` is the process, also when it has ended.
    """

    def __init__(self, variant: Candidate, baseline: EagerBaseline, say: Callable[[MeasuringStep], None]) -> None:
        self.row = BenchRow(variant, MeasurementStatus.MEASURED)
        self.explanation: Explanation | None = None
        self._baseline = baseline
        self._say = say
        say(MeasuringStep.RUN)
        self.worker = baseline.original.workers.start(variant)

    def run(self) -> None:
        """Compiles the calls, compares their results, compiles again what is timed, and times it."""
        try:
            with self.worker as worker:
                self._compile(worker)
                self._say(MeasuringStep.TIME)
                self._time(worker)
        except _Stopped:
            pass
        except WorkerError as error:
            self._fail(MeasurementStatus.FAILED, error.stage or Stage.RUN_TIME, _error(error.first_line))

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
            self._stop(MeasurementStatus.FAILED, result.failure.stage, _error(result.failure.text))
        self._require_steady(self.explanation, result)
        if unlike := self._baseline.unlike(worker, result):
            # Its time cannot be compared with that of code that computes something else.
            observation = Observation(ObservationKind.DIFFERS, details=(unlike[0],))
            self._stop(MeasurementStatus.DIFFERS, Stage.RESULTS, observation)

    def _explain(self, worker: Worker, result: CompiledResult | None) -> Explanation:
        """Returns what was recorded, also for failed runs."""
        explanation, processes = explained(worker, (), {})
        stages = _stages(processes)
        if result is None and not stages["total"]:
            # The process ended before anything was recorded.
            return explanation
        self.row = replace(self.row, **_counts(explanation), compile_seconds=stages)
        if result is not None and result.failure is None:
            self.row = replace(
                self.row,
                kernels=kernels_of_step(explanation, result.calls_each),
                first_call_seconds=result.first_call_seconds,
                compiling_seconds=result.compiling_seconds,
                startup_seconds=self._startup(),
                busy=result.busy,
            )
            if result.busy:
                self._baseline.note(Observation(ObservationKind.BUSY))
        return explanation

    def _startup(self) -> float:
        """The seconds of the import of the parts of the compiler that the variant needs."""
        stages = self._baseline.original.workers.server.startup_seconds
        parts = (DYNAMO, INDUCTOR) if "inductor" in self.row.compile_seconds else (DYNAMO,)
        return sum(stages.get(part, 0.0) for part in parts)

    def _require_steady(self, explanation: Explanation, result: CompiledResult) -> None:
        if any(frame.over_limit for frame in explanation.frames):
            self._stop_recompiling(explanation, ObservationKind.RECOMPILES_TO_LIMIT)
        if result.endless:
            self._stop_recompiling(explanation, ObservationKind.RECOMPILES_EACH_CALL)

    def _stop_recompiling(self, explanation: Explanation, kind: ObservationKind) -> NoReturn:
        cause = next((one.subject for one in explanation.recompiles), "")
        self._stop(MeasurementStatus.UNSTEADY, Stage.RECOMPILING, Observation(kind, cause))

    def _time(self, worker: Worker) -> None:
        assert self.explanation is not None
        try:
            step, ratio = self._baseline.timed(worker, LONGEST)
        except Unsteady as error:
            if error.name == StepKind.EAGER:
                self._stop(MeasurementStatus.FAILED, Stage.RUN_TIME, Observation(ObservationKind.COMPILES_WHILE_EAGER))
            self._stop_recompiling(self.explanation, ObservationKind.RECOMPILES_WHILE_TIMED)
        row = replace(
            self.row,
            processes=1,
            step_seconds=step,
            ratio=ratio,
            memory_bytes=worker.ask(StepTimer.memory, StepKind.COMPILED),
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
        whole = [timed.stages.get(stage, 0.0) for stage in STAGES]
        for stage, seconds, inner in zip(STAGES, whole, [*whole[1:], 0.0], strict=True):
            if seconds:
                found[stage] = found.get(stage, 0.0) + max(0.0, seconds - inner)
    return found


LONGEST_AGAIN = 4.0
"""Seconds for which each of the further processes is timed."""
FAR = 1.25
"""The ratio to eager steps from which a variant is slower in any further process, too."""


def is_worth_repeating(row: BenchRow) -> bool:
    """Returns whether further processes can show anything else than the first one."""
    return row.ratio is not None and row.ratio.high > 1 / FAR
