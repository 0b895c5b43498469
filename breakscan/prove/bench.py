"""The pipeline of ``bench``: from a program to the measurements of each variant."""

from __future__ import annotations

import statistics
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any

from breakscan.explanation.explanation import Explanation
from breakscan.prove import faster as measure
from breakscan.prove.bench_result import OWN, Bench, BenchRow, Eager, MeasurementStatus, best_of, pays_after
from breakscan.prove.call_runs import CompiledResult
from breakscan.prove.candidate import Candidate, MeasuringProgress, MeasuringStep, Say
from breakscan.prove.faster import PROCESSES, Ratio, Unsteady
from breakscan.prove.fork_server import DYNAMO, INDUCTOR, ForkServerProcess
from breakscan.prove.observation import NothingToMeasure, Observation, ObservationKind, environment_of, notes_of
from breakscan.prove.original import (
    NOT_TRIED,
    Original,
    compile_as,
    counts_of,
    explained,
    kernels_of_step,
    running_original,
)
from breakscan.prove.process import WorkerProcess
from breakscan.prove.protocol import Choices, CompileChoice, CompileOption, Stage, StepKind
from breakscan.prove.step_timer import StepTimer
from breakscan.prove.worker import UserProgram, Worker, WorkerError, Workers, interrupted_once
from breakscan.recording.records import CompileTimed, Record

LONGEST = 8.0
"""Seconds of timing."""


LADDER = ("eager", "aot_eager", INDUCTOR, "cudagraphs")
"""Backends that are tried first. Each adds a stage of compiling to the one before it."""
MODES = ("default", "reduce-overhead", "max-autotune-no-cudagraphs", "max-autotune")
"""The modes that ``torch.compile`` documents."""
AUTOTUNE = "max-autotune"
_CUDA_GRAPHS = "triton.cudagraphs"
_NEEDS_GPU = ("cudagraphs",)


@dataclass(frozen=True, slots=True)
class WantedVariants:
    """The variants to try.

    ``backends`` and ``modes`` are names, None for all that exist. Without ``autotune``, modes that take minutes are
    left out; without ``dynamic``, dynamic shapes are.
    """

    backends: tuple[str, ...] | None = None
    modes: tuple[str, ...] | None = None
    autotune: bool = True
    dynamic: bool = True


def _choice_of(variant: Candidate, choices: Choices) -> CompileChoice | None:
    """The choice that a variant results in; None where the program's own is not the same for all callables."""
    given: Mapping[str, Any] | None = variant.options
    if given is None:
        first, *others = choices.chosen
        return first if all(other == first for other in others) else None
    options = choices.modes.get(given.get("mode", "default"), {})
    return CompileChoice(given.get("backend", INDUCTOR), options, given.get("dynamic"), given.get("fullgraph", False))


def _kept(choices: Choices) -> dict[str, CompileOption]:
    """The arguments that the program passes to ``torch.compile`` besides a backend and its options. All variants keep
    them.
    """
    kept: dict[str, CompileOption] = {}
    fullgraph = {one is not None and one.fullgraph for one in choices.chosen}
    dynamic = {one.dynamic if one else None for one in choices.chosen}
    if fullgraph == {True}:
        kept["fullgraph"] = True
    if len(dynamic) == 1 and (value := dynamic.pop()) is not None:
        kept["dynamic"] = value
    return kept


def planned(wanted: WantedVariants, choices: Choices) -> tuple[Candidate, ...]:
    """Returns all variants, the program's own first. Raises NothingToMeasure if
    torch lacks a backend or mode that is asked for."""
    _require(wanted.backends, choices.all_backends, "backend", "torch._dynamo.register_backend adds one")
    _require(wanted.modes, list(choices.modes), "mode", "those of inductor are meant")
    kept = _kept(choices)
    variants = [Candidate(OWN)]
    for backend in wanted.backends or dict.fromkeys((*LADDER, *choices.backends)):
        if backend == INDUCTOR:
            modes = wanted.modes or tuple(mode for mode in MODES if mode in choices.modes)
            variants += [
                Candidate(f'mode="{mode}"', {**({} if mode == "default" else {"mode": mode}), **kept})
                for mode in modes
                if wanted.autotune or not mode.startswith(AUTOTUNE)
            ]
            if wanted.dynamic:
                variants.append(Candidate("dynamic=True", {**kept, "dynamic": True}))
        else:
            variants.append(Candidate(f'backend="{backend}"', {"backend": backend, **kept}))
    return tuple(variants)


def _require(names: Sequence[str] | None, known: Sequence[str], what: str, more: str) -> None:
    for name in names or ():
        if name not in known:
            raise NothingToMeasure(f"there is no {what} {name!r}: torch has {', '.join(sorted(known))} ({more})")


def doubles(variants: Sequence[Candidate], choices: Choices) -> dict[str, BenchRow]:
    """Returns the variants that are not run, by label: those that ``torch.compile`` treats like another one, and those
    that need a GPU if there is none."""
    found: dict[str, BenchRow] = {}
    seen: dict[str, str] = {}
    for variant in variants:
        label = variant.label
        if not choices.cuda and variant.options and variant.options.get("backend") in _NEEDS_GPU:
            found[label] = _skipped(variant, None, ObservationKind.NEEDS_CUDA)
            continue
        choice = _choice_of(variant, choices)
        if choice is None:
            continue
        # Without tensors on a GPU there are no CUDA graphs.
        left_out = () if choices.cuda else (_CUDA_GRAPHS,)
        options = {name: value for name, value in sorted(choice.options.items()) if name not in left_out}
        key = repr(replace(choice, options=options))
        if key in seen:
            found[label] = _skipped(variant, seen[key], ObservationKind.SAME_CHOICE)
        seen.setdefault(key, label)
    return found


def _skipped(variant: Candidate, same_as: str | None, why: ObservationKind) -> BenchRow:
    return BenchRow(variant, MeasurementStatus.SKIPPED, Stage.NOT_RUN, Observation(why), same_as)


def write_for(row: BenchRow, callables: Sequence[str], asked: bool) -> str | None:
    """Returns the code for a variant; None if the program already compiles this way, unless ``--compile`` asked for
    it."""
    options = row.variant.options
    if options is None and not asked:
        return None
    name = callables[0]
    subject = name if len(callables) == 1 and name.isidentifier() and name[:1].islower() else "model"
    arguments = "".join(
        f', {key}="{value}"' if isinstance(value, str) else f", {key}={value}" for key, value in (options or {}).items()
    )
    return f"torch.compile({subject}{arguments})"


def bench(program: UserProgram, wanted: WantedVariants, say: Say) -> Bench:
    """Runs the program several times, and writes nothing.

    ``say`` is called with the progress. SIGINT or SIGTERM ends the run, which returns what is measured until then.
    Raises NothingToMeasure if the program cannot be measured, or torch lacks a backend or mode that is asked for, and
    WorkerError if it cannot be run.
    """
    temporary = tempfile.TemporaryDirectory(prefix="breakscan-bench-", ignore_cleanup_errors=True)
    measured: _Bench | None = None
    was_interrupted = False
    try:
        with temporary as folder, interrupted_once(), ForkServerProcess(Path(folder) / "server") as server:
            say(MeasuringProgress(MeasuringStep.RUN))
            with running_original(Workers(program, Path(folder), server)) as original:
                measured = _Bench(original, wanted, say)
            measured.run()
    except KeyboardInterrupt:
        was_interrupted = True
    if measured is None:
        return Bench(program.argv, environment_of(None, None), {}, frozenset(), (), interrupted=was_interrupted)
    return measured.result(was_interrupted)


class _Bench:
    """Runs the variants of a program, next to eager steps of the same process.

    ``same`` is the ratio of two eager processes.  ``steps`` are the seconds of eager steps; those of later processes
    are added.
    """

    def __init__(self, original: Original, wanted: WantedVariants, say: Say) -> None:
        """Times eager steps.  Raises WorkerError and NothingToMeasure."""
        first, second = original.first, original.second
        self.original = original
        self.say = say
        self.choices = second.ask(WorkerProcess.choices)
        self.variants = planned(wanted, self.choices)
        self.rows: list[BenchRow] = []
        self.device = ""
        self._started: dict[str, Worker] = {}
        """The first process of each variant, by label."""
        say(MeasuringProgress(MeasuringStep.TIME))
        original.time_alike(second)
        rounds = measure.race({"eager": first, "same": second}, StepKind.EAGER, LONGEST)
        self.same = rounds.ratio("same", "eager")
        self.steps = list(chain(*rounds.seconds.values()))
        self.memory_bytes = first.ask(StepTimer.memory, StepKind.EAGER)
        self.notes = original.notes
        if original.unrepeatable is not None:
            self.note(Observation(ObservationKind.NOT_COMPARED, details=(original.unrepeatable,)))

    def run(self) -> None:
        """Tries all variants, then repeats those that matter."""
        skipped = doubles(self.variants, self.choices)
        for number, variant in enumerate(self.variants, 1):
            self.rows.append(skipped.get(variant.label) or self._measured(variant, number))
        self._run_again()

    def _measured(self, variant: Candidate, number: int) -> BenchRow:
        """Compiles the calls in a process of its own, compares their results, compiles again what is timed, and times
        it.  The row records any failure."""

        def say(step: MeasuringStep) -> None:
            self.say(MeasuringProgress(step, variant.label, number, len(self.variants)))

        self._row = BenchRow(variant, MeasurementStatus.MEASURED)
        say(MeasuringStep.RUN)
        self._started[variant.label] = worker = self.original.workers.start(variant)
        try:
            with worker:
                if problem := self.original.incomparable(worker, worker.ready(), variant):
                    if problem.kind in NOT_TRIED:
                        raise _Stopped(MeasurementStatus.SKIPPED, Stage.NOT_RUN, problem)
                    raise _Stopped(MeasurementStatus.FAILED, Stage.RUN_TIME, problem)
                compile_as(worker, variant)
                say(MeasuringStep.COMPILE)
                explanation = self._compile(worker)
                say(MeasuringStep.TIME)
                self._time(worker, explanation)
        except _Stopped as stopped:
            status, stage, problem = stopped.args
            self._row = replace(self._row, status=status, stage=stage, problem=problem)
        except WorkerError as error:
            failed, stage = MeasurementStatus.FAILED, error.stage or Stage.RUN_TIME
            self._row = replace(self._row, status=failed, stage=stage, problem=_error(error.first_line))
        return self._row

    def _compile(self, worker: Worker) -> Explanation:
        """Runs the calls compiled.  Returns what was recorded."""
        result = None
        try:
            result = self.original.run_compiled(worker, patient=False)
        finally:
            explanation = self._explain(worker, result)
        if result.failure is not None:
            raise _Stopped(MeasurementStatus.FAILED, result.failure.stage, _error(result.failure.text))
        if any(frame.over_limit for frame in explanation.frames):
            raise _recompiling(explanation, ObservationKind.RECOMPILES_TO_LIMIT)
        if result.endless:
            raise _recompiling(explanation, ObservationKind.RECOMPILES_EACH_CALL)
        if self.original.unrepeatable is None and (unlike := self.original.differences(worker, result)):
            # Its time cannot be compared with that of code that computes something else.
            observation = Observation(ObservationKind.DIFFERS, details=(unlike[0],))
            raise _Stopped(MeasurementStatus.DIFFERS, Stage.RESULTS, observation)
        return explanation

    def _explain(self, worker: Worker, result: CompiledResult | None) -> Explanation:
        """Returns what was recorded, also for failed runs."""
        explanation, processes = explained(worker, (), {})
        self.device = self.device or explanation.device or ""
        stages = _stages(processes)
        if result is None and not stages["total"]:
            # The process ended before anything was recorded.
            return explanation
        self._row = replace(self._row, **counts_of(explanation), compile_seconds=stages)
        if result is not None and result.failure is None:
            startup = self.original.workers.server.startup_seconds
            # Those are imported that the variant needs.
            parts = (DYNAMO, INDUCTOR) if "inductor" in stages else (DYNAMO,)
            self._row = replace(
                self._row,
                kernels=kernels_of_step(explanation, result.calls_each),
                first_call_seconds=result.first_call_seconds,
                compiling_seconds=result.compiling_seconds,
                startup_seconds=sum(startup.get(part, 0.0) for part in parts),
                busy=result.busy,
            )
            if result.busy:
                self.note(Observation(ObservationKind.BUSY))
        return explanation

    def _time(self, worker: Worker, explanation: Explanation) -> None:
        try:
            step, ratio = self.timed(worker, LONGEST)
        except Unsteady as error:
            if error.name == StepKind.EAGER:
                observation = Observation(ObservationKind.COMPILES_WHILE_EAGER)
                raise _Stopped(MeasurementStatus.FAILED, Stage.RUN_TIME, observation) from None
            raise _recompiling(explanation, ObservationKind.RECOMPILES_WHILE_TIMED) from None
        memory = worker.ask(StepTimer.memory, StepKind.COMPILED)
        row = replace(self._row, processes=1, step_seconds=step, ratio=ratio, memory_bytes=memory)
        self._row = replace(row, pays_after_calls=pays_after(row, self.same))

    def _run_again(self) -> None:
        """Repeats the variants that the reader relies on in more processes: the program's own, and the one to choose.

        The variant to choose may change as a result.
        """
        done: set[str] = set()
        while True:
            best, _ = best_of(self.rows, self.same)
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
        original, found = self.original, [(row.step_seconds, row.ratio)]
        try:
            for number in range(2, PROCESSES + 1):
                self.say(MeasuringProgress(MeasuringStep.REPEAT, row.label, number, PROCESSES))
                with original.workers.start(row.variant, self._started[row.label]) as worker:
                    if original.incomparable(worker, worker.ready(), row.variant):
                        raise WorkerError("it cannot be compared with the first one")
                    compile_as(worker, row.variant)
                    found.append(self.timed(worker, LONGEST_AGAIN))
        except (WorkerError, Unsteady) as error:
            text = error.first_line if isinstance(error, WorkerError) else "it is compiled again while it is timed"
            self.note(Observation(ObservationKind.ONE_PROCESS, text, (row.label,)))
            return row
        steps, ratios = zip(*found, strict=True)
        row = replace(
            row,
            processes=PROCESSES,
            step_seconds=statistics.geometric_mean(steps),
            ratio=measure.ratio_of_processes(ratios),
        )
        return replace(row, pays_after_calls=pays_after(row, self.same))

    def result(self, was_interrupted: bool) -> Bench:
        """Returns the measurements so far."""
        about = self.original.about
        best, as_fast = best_of(self.rows, self.same)
        left = [_skipped(one, None, ObservationKind.INTERRUPTED) for one in self.variants[len(self.rows) :]]
        callables = {one.name: one.calls for one in about.callables}
        asked = bool(self.original.workers.program.requests.compile)
        return Bench(
            argv=self.original.workers.program.argv,
            environment=environment_of(about, self.device),
            callables=callables,
            backward=about.with_backward,
            rows=(*self.rows, *left),
            eager=Eager(self.original.run.first_seconds, statistics.median(self.steps), self.memory_bytes),
            same=self.same,
            step=self.original.step,
            notes=(*notes_of(about), *self.notes),
            interrupted=was_interrupted,
            best=best.label if best else None,
            as_fast=tuple(row.label for row in as_fast),
            write=None if best is None else write_for(best, [one.name for one in about.callables], asked),
        )

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


class _Stopped(Exception):
    """A variant is not measured further: its status, the stage, and the reason."""


def _recompiling(explanation: Explanation, kind: ObservationKind) -> _Stopped:
    cause = next((one.subject for one in explanation.recompiles), "")
    return _Stopped(MeasurementStatus.UNSTEADY, Stage.RECOMPILING, Observation(kind, cause))


def _error(text: str) -> Observation:
    return Observation(ObservationKind.ERROR, text)


def _stages(processes: Sequence[Sequence[Record]]) -> dict[str, float]:
    """Returns the seconds of all compiles, and of each stage without the stages within it."""
    found = {"total": 0.0}
    for timed in (record for process in processes for record in process if isinstance(record, CompileTimed)):
        found["total"] += timed.seconds
        for stage, seconds in timed.stages.items():
            found[stage] = found.get(stage, 0.0) + seconds
    return found


LONGEST_AGAIN = 4.0
"""Seconds for which each of the further processes is timed."""
FAR = 1.25
"""The ratio to eager steps from which a variant is slower in any further process, too."""


def is_worth_repeating(row: BenchRow) -> bool:
    """Returns whether further processes can show anything else than the first one."""
    return row.ratio is not None and row.ratio.high > 1 / FAR
