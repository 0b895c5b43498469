"""The pipeline of ``bench``: from a program to the measurements of each variant, and which one to choose."""

import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from itertools import chain

from breakscan.explanation.explanation import Explanation
from breakscan.prove import faster as measure
from breakscan.prove.call_runs import CompiledResult
from breakscan.prove.faster import LEAST, PROCESSES, Ratio, Unsteady, apart, is_faster
from breakscan.prove.fork_server import DYNAMO, INDUCTOR
from breakscan.prove.observation import NothingToMeasure, Observation, ObservationKind, environment_of, notes_of
from breakscan.prove.original import NOT_TRIED, Original, counts_of, explained, kernels_of_step, running_original
from breakscan.prove.process import WorkerProcess
from breakscan.prove.protocol import Choices, Stage, StepKind, TimedStep
from breakscan.prove.step_timer import StepTimer
from breakscan.prove.worker import Candidate, Say, UserProgram, Worker, WorkerError, workers_of
from breakscan.recording.records import CompileTimed, Record

OWN = "program's own"
"""The label of the variant in which the program itself compiles."""


class MeasurementStatus(str, Enum):
    """The outcome of a variant in one word."""

    MEASURED = "measured"
    FAILED = "failed"
    DIFFERS = "differs"
    """It was measured, and its results differ from those of eager code."""
    UNSTEADY = "unsteady"
    """It is compiled again and again."""
    SKIPPED = "skipped"


@dataclass(slots=True)
class BenchRow:
    """The measurements of one variant; None and empty values were not measured.

    ``stage`` is the stage that failed, and ``problem`` the reason; or what differs, what is compiled again, or why it
    was not run.  ``kernels`` are those of a step, by kind; ``compile_seconds`` has ``total`` and the stages in it;
    ``startup_seconds`` pass before that, for the import of the compiler; ``compiling_seconds`` are those that the first
    calls take longer than later ones, from empty caches; ``busy`` says that other programs had the cores meanwhile;
    ``ratio`` says how many times as fast as eager a step is, measured in ``processes`` processes; ``pays_after_calls``
    counts from the first call."""

    variant: Candidate
    status: MeasurementStatus
    stage: Stage | None = None
    problem: Observation | None = None
    same_as: str | None = None
    breaks: int | None = None
    recompiles: int | None = None
    graphs: int | None = None
    eager_frames: int | None = None
    kernels: Mapping[str, int] = field(default_factory=dict)
    compile_seconds: Mapping[str, float] = field(default_factory=dict)
    startup_seconds: float = 0.0
    busy: bool = False
    first_call_seconds: float | None = None
    compiling_seconds: float | None = None
    step_seconds: float | None = None
    ratio: Ratio | None = None
    processes: int | None = None
    memory_bytes: int | None = None
    pays_after_calls: int | None = None

    @property
    def label(self) -> str:
        """The label of the variant."""
        return self.variant.label

    @property
    def spent_on_compiling(self) -> float | None:
        """The same with the import of the compiler."""
        return None if self.compiling_seconds is None else self.startup_seconds + self.compiling_seconds

    @property
    def eager_seconds(self) -> float | None:
        """The time of an eager step in the same rounds."""
        return None if self.ratio is None or self.step_seconds is None else self.step_seconds * self.ratio.median


@dataclass(frozen=True, slots=True)
class Eager:
    """The program run without a compiler, the baseline of all variants."""

    first_call_seconds: float
    step_seconds: float
    memory_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class Bench:
    """The result of one command.

    ``same`` is the ratio of two processes that both run eager, ``step`` what was timed.  ``best`` is the label of the
    variant to choose, None if none is faster than eager; ``as_fast`` are those within noise of the fastest.
    ``backward`` are the callables whose backward pass the program runs; ``write`` is the code to write for the best,
    None if the program already does so."""

    argv: tuple[str, ...]
    environment: Mapping[str, str]
    callables: Mapping[str, int]
    backward: frozenset[str]
    rows: tuple[BenchRow, ...]
    eager: Eager | None = None
    same: Ratio | None = None
    notes: tuple[Observation, ...] = ()
    interrupted: bool = False
    step: TimedStep | None = None
    best: str | None = None
    as_fast: tuple[str, ...] = ()
    write: str | None = None

    def row(self, label: str | None) -> BenchRow | None:
        """Returns the row with this label."""
        return next((row for row in self.rows if row.label == label), None)


LONGEST = 8.0
"""Seconds of timing."""


LADDER = ("eager", "aot_eager", INDUCTOR, "cudagraphs")
"""Backends that are tried first. Each adds a stage of compiling to the one before it."""
MODES = ("default", "reduce-overhead", "max-autotune-no-cudagraphs", "max-autotune")
"""The modes that ``torch.compile`` documents."""
AUTOTUNE = "max-autotune"


@dataclass(frozen=True, slots=True)
class WantedVariants:
    """The variants to try. ``backends`` and ``modes`` are names, None for all that exist. Without ``autotune``, modes
    that take minutes are left out; without ``dynamic``, dynamic shapes are."""

    backends: tuple[str, ...] | None = None
    modes: tuple[str, ...] | None = None
    autotune: bool = True
    dynamic: bool = True


def planned(wanted: WantedVariants, choices: Choices) -> tuple[Candidate, ...]:
    """Returns all variants, the program's own first.  Raises NothingToMeasure if torch lacks one that is asked for."""
    _require(wanted.backends, choices.all_backends, "backend", "torch._dynamo.register_backend adds one")
    _require(wanted.modes, choices.modes, "mode", "those of inductor are meant")
    kept = choices.kept
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


def doubles(
    variants: Sequence[Candidate], cuda: bool, key_of: Callable[[Candidate], str | None]
) -> dict[str, BenchRow]:
    """The variants that are not run, by label: those with the key of another one, and those that need a GPU."""
    found: dict[str, BenchRow] = {}
    seen: dict[str, str] = {}
    for variant in variants:
        if not cuda and variant.options and variant.options.get("backend") == "cudagraphs":
            found[variant.label] = _skipped(variant, None, ObservationKind.NEEDS_CUDA)
        elif (key := key_of(variant)) is not None and seen.setdefault(key, variant.label) != variant.label:
            found[variant.label] = _skipped(variant, seen[key], ObservationKind.SAME_CHOICE)
    return found


def _skipped(variant: Candidate, same_as: str | None, why: ObservationKind) -> BenchRow:
    return BenchRow(variant, MeasurementStatus.SKIPPED, Stage.NOT_RUN, Observation(why), same_as)


def write_for(row: BenchRow, callables: Sequence[str], asked: bool) -> str | None:
    """Returns the code for a variant; None if the program already compiles so, unless ``--compile`` asked for it."""
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
    """Runs the program several times, and writes nothing.  SIGINT or SIGTERM ends it, with what is measured until then.
    Raises NothingToMeasure if it cannot be measured, or torch lacks what is asked for, WorkerError if it cannot run."""
    measured: _Bench | None = None
    was_interrupted = False
    try:
        with workers_of(program, cold=True) as workers:
            say("running the program")
            with running_original(workers) as original:
                measured = _Bench(original, wanted, say)
            measured.run()
    except KeyboardInterrupt:
        was_interrupted = True
    if measured is None:
        return Bench(program.argv, environment_of(None, None), {}, frozenset(), (), interrupted=was_interrupted)
    return measured.result(was_interrupted)


class _Bench:
    """Runs the variants of a program, next to eager steps of the same process.  ``same`` is the ratio of two eager
    processes.  ``steps`` are the seconds of eager steps; those of later processes are added."""

    def __init__(self, original: Original, wanted: WantedVariants, say: Say) -> None:
        """Times eager steps.  Raises WorkerError and NothingToMeasure."""
        first, second = original.first, original.second
        self.original = original
        self.say = say
        choices = second.ask(WorkerProcess.choices)
        self.variants = planned(wanted, choices)
        self._skipped = doubles(self.variants, choices.cuda, lambda one: second.ask(WorkerProcess.choice, one.options))
        self.rows: list[BenchRow] = []
        self.device = ""
        self._started: dict[str, Worker] = {}
        """The first process of each variant, by label."""
        say("timing it eager")
        original.time_alike(second)
        rounds = measure.race({"eager": (first, StepKind.EAGER), "same": (second, StepKind.EAGER)}, LONGEST)
        self.same = rounds.ratio("same", "eager")
        self.steps = list(chain(*rounds.seconds.values()))
        self.memory_bytes = first.ask(StepTimer.memory, StepKind.EAGER)
        self.notes = original.notes
        if original.unrepeatable is not None:
            self.note(Observation(ObservationKind.NOT_COMPARED, details=(original.unrepeatable,)))

    def run(self) -> None:
        """Tries all variants, then repeats those that matter."""
        for number, variant in enumerate(self.variants, 1):
            self.rows.append(self._skipped.get(variant.label) or self._measured(variant, number))
        self._run_again()

    def _measured(self, variant: Candidate, number: int) -> BenchRow:
        """Compiles the calls in a process of its own, compares results and times them.  The row has any failure."""

        row = BenchRow(variant, MeasurementStatus.MEASURED)
        said = f"{number} of {len(self.variants)}: {variant.label}"
        self.say(f"{said}: running the program")
        self._started[variant.label] = worker = self.original.workers.start(variant)
        try:
            with worker:
                if problem := self.original.incomparable(worker, worker.ready(), variant):
                    if problem.kind in NOT_TRIED:
                        raise _Stopped(MeasurementStatus.SKIPPED, Stage.NOT_RUN, problem)
                    raise _Stopped(MeasurementStatus.FAILED, Stage.RUN_TIME, problem)
                worker.compile_as(variant)
                self.say(f"{said}: compiling")
                explanation = self._compile(row, worker)
                self.say(f"{said}: timing")
                self._time(row, worker, explanation)
        except _Stopped as stopped:
            row.status, row.stage, row.problem = stopped.args
        except WorkerError as error:
            row.status, row.stage = MeasurementStatus.FAILED, error.stage or Stage.RUN_TIME
            row.problem = Observation(ObservationKind.ERROR, error.first_line)
        return row

    def _compile(self, row: BenchRow, worker: Worker) -> Explanation:
        """Runs the calls compiled.  Returns what was recorded."""
        result = None
        try:
            result = self.original.run_compiled(worker, patient=False)
        finally:
            explanation = self._explain(row, worker, result)
        if result.failure is not None:
            raise _Stopped(
                MeasurementStatus.FAILED, result.failure.stage, Observation(ObservationKind.ERROR, result.failure.text)
            )
        if any(frame.over_limit for frame in explanation.frames):
            raise _recompiling(explanation, ObservationKind.RECOMPILES_TO_LIMIT)
        if result.endless:
            raise _recompiling(explanation, ObservationKind.RECOMPILES_EACH_CALL)
        if self.original.unrepeatable is None and (unlike := self.original.differences(worker, result)):
            # Its time cannot be compared with that of code that computes something else.
            observation = Observation(ObservationKind.DIFFERS, details=(unlike[0],))
            raise _Stopped(MeasurementStatus.DIFFERS, Stage.RESULTS, observation)
        return explanation

    def _explain(self, row: BenchRow, worker: Worker, result: CompiledResult | None) -> Explanation:
        """Returns what was recorded, also for failed runs."""
        explanation, processes = explained(worker, (), {})
        self.device = self.device or explanation.device or ""
        stages = _stages(processes)
        if result is None and not stages["total"]:
            # The process ended before anything was recorded.
            return explanation
        for name, count in counts_of(explanation).items():
            setattr(row, name, count)
        row.compile_seconds = stages
        if result is not None and result.failure is None:
            startup = self.original.workers.server.startup_seconds
            # Those are imported that the variant needs.
            parts = (DYNAMO, INDUCTOR) if "inductor" in stages else (DYNAMO,)
            row.startup_seconds = sum(startup.get(part, 0.0) for part in parts)
            row.kernels = kernels_of_step(explanation, result.calls_each)
            row.first_call_seconds, row.compiling_seconds = result.first_call_seconds, result.compiling_seconds
            row.busy = result.busy
            if result.busy:
                self.note(Observation(ObservationKind.BUSY))
        return explanation

    def _time(self, row: BenchRow, worker: Worker, explanation: Explanation) -> None:
        try:
            row.step_seconds, row.ratio = self.timed(worker, LONGEST)
        except Unsteady as error:
            if str(error) == StepKind.EAGER:
                observation = Observation(ObservationKind.COMPILES_WHILE_EAGER)
                raise _Stopped(MeasurementStatus.FAILED, Stage.RUN_TIME, observation) from None
            raise _recompiling(explanation, ObservationKind.RECOMPILES_WHILE_TIMED) from None
        row.processes, row.memory_bytes = 1, worker.ask(StepTimer.memory, StepKind.COMPILED)

    def _run_again(self) -> None:
        """Repeats the variants that the reader relies on in more processes: the program's own, and the one to choose.
        The variant to choose may change as a result."""
        done: set[str] = set()
        while True:
            best, _ = best_of(self.rows, self.same)
            wanted = {OWN, *([best.label] if best else [])} - done
            measured = [row for row in self.rows if row.status is MeasurementStatus.MEASURED]
            again = [row for row in measured if row.label in wanted and row.ratio and row.ratio.high > 1 / FAR]
            if not again:
                return
            for row in again:
                done.add(row.label)
                self._again(row)

    def _again(self, row: BenchRow) -> None:
        """Adds the measurements of further processes, or a note where one fails."""
        assert row.ratio is not None
        assert row.step_seconds is not None
        original, found = self.original, [(row.step_seconds, row.ratio)]
        try:
            for number in range(2, PROCESSES + 1):
                self.say(f"{number} of {PROCESSES}: {row.label}: timing it in further processes")
                with original.workers.start(row.variant, self._started[row.label]) as worker:
                    if original.incomparable(worker, worker.ready(), row.variant):
                        raise WorkerError("it cannot be compared with the first one")
                    worker.compile_as(row.variant)
                    found.append(self.timed(worker, LONGEST_AGAIN))
        except (WorkerError, Unsteady) as error:
            text = error.first_line if isinstance(error, WorkerError) else "it is compiled again while it is timed"
            self.note(Observation(ObservationKind.ONE_PROCESS, text, (row.label,)))
            return
        steps, ratios = zip(*found, strict=True)
        row.processes, row.step_seconds = PROCESSES, statistics.geometric_mean(steps)
        row.ratio = measure.ratio_of_processes(ratios)

    def result(self, was_interrupted: bool) -> Bench:
        """Returns the measurements so far."""
        about = self.original.about
        best, as_fast = best_of(self.rows, self.same)
        for row in self.rows:
            row.pays_after_calls = pays_after(row, self.same)
        left = [_skipped(one, None, ObservationKind.INTERRUPTED) for one in self.variants[len(self.rows) :]]
        callables, program = {one.name: one.calls for one in about.callables}, self.original.workers.program
        return Bench(
            argv=program.argv,
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
            write=None if best is None else write_for(best, list(callables), bool(program.requests.compile)),
        )

    def timed(self, worker: Worker, longest: float) -> tuple[float, Ratio]:
        """The seconds of a compiled step, and its ratio to an eager one.  Raises Unsteady and WorkerError."""
        self.original.time_alike(worker)
        both = {kind.value: (worker, kind) for kind in (StepKind.COMPILED, StepKind.EAGER)}
        # By how much it is slower is not worth more time.
        rounds = measure.race(both, longest, lambda its: measure.is_slower(its.ratio(*both, certainty=1), self.same))
        self.steps += rounds.seconds[StepKind.EAGER]
        return statistics.median(rounds.seconds[StepKind.COMPILED]), rounds.ratio(*both)

    def note(self, observation: Observation) -> None:
        """Adds a note, unless it was added before."""
        if observation not in self.notes:
            self.notes.append(observation)


class _Stopped(Exception):
    """A variant is not measured further: its status, the stage, and the reason."""


def _recompiling(explanation: Explanation, kind: ObservationKind) -> _Stopped:
    cause = next((one.subject for one in explanation.recompiles), "")
    return _Stopped(MeasurementStatus.UNSTEADY, Stage.RECOMPILING, Observation(kind, cause))


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


AS_CHEAP = 1.25
"""The program's own variant is kept if its cold cost is at most this many times that of the cheapest variant."""


def pays_after(row: BenchRow, same: Ratio) -> int | None:
    """Returns the number of calls, including the first, after which the time spent on compiling is recovered. Returns
    None if a step is not faster than eager."""
    spent = row.spent_on_compiling
    if row.ratio is None or row.eager_seconds is None or row.step_seconds is None or spent is None:
        return None
    if row.busy or row.ratio.is_noisy or not is_faster(row.ratio, same):
        return None
    return max(1, math.ceil(spent / (row.eager_seconds - row.step_seconds)))


def best_of(rows: Sequence[BenchRow], same: Ratio) -> tuple[BenchRow | None, tuple[BenchRow, ...]]:
    """Returns the variant to choose, and all that are as fast within noise, including it. It is the one whose first
    calls cost least, or the program's own if that costs about as little. Returns None if none is faster than eager."""
    measured = (row for row in rows if row.status is MeasurementStatus.MEASURED and row.ratio is not None)
    faster = [row for row in measured if is_faster(_ratio(row), same)]
    if not faster:
        return None, ()
    fastest = max(faster, key=lambda row: _ratio(row).low)
    least = max(LEAST, apart(same))
    as_fast = [row for row in faster if not is_slower(row, fastest, least)]
    cheapest = min(as_fast, key=_cost)
    own = next((row for row in as_fast if row.variant.options is None), None)
    best = own if own is not None and _cost(own) <= AS_CHEAP * _cost(cheapest) else cheapest
    return best, tuple(as_fast)


def is_slower(row: BenchRow, fastest: BenchRow, least: float) -> bool:
    """Returns whether a variant is slower than another. Each was timed against eager runs in its own process. A machine
    that was faster at that time changes the ratio, and it changes the step as well, so both have to agree."""
    if row.step_seconds is None or fastest.step_seconds is None:
        return False
    by_ratio = _ratio(fastest).low > least * _ratio(row).high
    return by_ratio and row.step_seconds > least * fastest.step_seconds


def _ratio(row: BenchRow) -> Ratio:
    assert row.ratio is not None
    return row.ratio


def _cost(row: BenchRow) -> float:
    return row.spent_on_compiling or 0.0
