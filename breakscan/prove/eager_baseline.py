"""The program run eager. Its results and times are the baseline of all variants."""

from __future__ import annotations

import contextlib
import functools
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from breakscan.prove import faster as measure
from breakscan.prove.bench_result import BenchProgress, Eager
from breakscan.prove.call_result import CallResult
from breakscan.prove.candidate import UNCHANGED, MeasuringStep
from breakscan.prove.commands import CommandHandler
from breakscan.prove.equal import ResultDifference
from breakscan.prove.fork_server import ForkServerProcess
from breakscan.prove.observation import Observation, ObservationKind, other_calls, require_calls
from breakscan.prove.original import Baseline, SavedValues
from breakscan.prove.protocol import (
    CompileOption,
    Description,
    ResolvedChoice,
    StepKind,
)
from breakscan.prove.step_timer import StepTimer
from breakscan.prove.variants import Choices
from breakscan.prove.worker import UserProgram, Worker, WorkerError

LONGEST = 8.0
"""Seconds of timing."""

Plan = Callable[[Choices], Sequence[Mapping[str, CompileOption]]]
"""A function that chooses the keyword arguments of ``torch.compile`` for each variant."""


@dataclass
class EagerBaseline:
    """The results of two eager processes of a program.

    ``steps`` are the seconds of eager steps; those of later processes are added. ``resolved`` says what
    ``torch.compile`` makes of the keyword arguments of each variant.
    """

    program: UserProgram
    folder: Path
    server: ForkServerProcess
    about: Description
    choices: Choices
    resolved: Sequence[ResolvedChoice]
    same: measure.Ratio
    steps: list[float]
    notes: list[Observation]
    baseline: Baseline
    memory_bytes: int | None
    launches: Mapping[str, int] | None
    host_bytes: int | None
    free_device_bytes: int | None

    @property
    def eager(self) -> Eager:
        """Returns the measurements of eager runs so far."""
        first = _first_call_seconds(self.about, self.baseline.eager)
        return Eager(first, statistics.median(self.steps), self.memory_bytes, self.launches)

    def other_than(self, about: Description) -> Observation | None:
        """Returns how the program fails in a process, or how its calls differ from those of the baseline."""
        if about.run.error and about.run.error != self.about.run.error:
            return Observation(ObservationKind.ERROR, about.run.error)
        other = other_calls(about, self.about)
        return Observation(ObservationKind.MAKES_OTHER_CALLS, calls=other) if other else None

    def not_taken(self, worker: Worker) -> Observation | None:
        """Gives a worker the values. Returns those that it cannot take over."""
        problems = self.baseline.values.hand_over(worker)
        return Observation(ObservationKind.VALUES_NOT_TAKEN, details=(problems[0],)) if problems else None

    def unlike(self, worker: Worker) -> list[ResultDifference]:
        """Returns how the compiled results that a worker has written differ from eager ones."""
        return [] if self.baseline.unrepeatable else self.baseline.compiled_differences(worker)

    def note(self, observation: Observation) -> None:
        """Adds a note, unless it was added before."""
        if observation not in self.notes:
            self.notes.append(observation)


def measure_eager(
    program: UserProgram,
    folder: Path,
    server: ForkServerProcess,
    plan: Plan,
    say: Callable[[BenchProgress], None],
) -> EagerBaseline:
    """Runs the program eager; ``folder`` is new. Raises
    NothingToMeasure and WorkerError, and what ``plan`` raises.
    """
    say(BenchProgress(MeasuringStep.RUN))
    with Worker(program, UNCHANGED, folder / "eager", server=server) as worker:
        about = worker.ready()
        require_calls(about)
        baseline = Baseline(worker, SavedValues(worker), ())
        say(BenchProgress(MeasuringStep.TIME))
        with Worker(program, UNCHANGED, folder / "second", server=server) as second:
            second.ready()
            available = second.ask(CommandHandler.choices)
            choices = Choices(available, "cuda" in about.devices)
            resolved = second.ask(CommandHandler.resolve, tuple(dict(options) for options in plan(choices)))
            baseline.repeat(second)
            rounds = _rounds(worker, second)
        host_bytes = worker.host_bytes
        memory = worker.ask(StepTimer.memory, StepKind.EAGER)
        free = worker.ask(CommandHandler.free_memory)
        launches = None
        with contextlib.suppress(WorkerError):
            launches = worker.ask(StepTimer.launches, StepKind.EAGER)
    details = (baseline.unrepeatable,) if baseline.unrepeatable is not None else ()
    unrepeatable = [Observation(ObservationKind.NOT_COMPARED, details=details)] if details else []
    return EagerBaseline(
        program=program,
        folder=folder,
        server=server,
        about=about,
        choices=choices,
        resolved=resolved,
        same=rounds.ratio("same", "eager"),
        steps=list(chain(*rounds.seconds.values())),
        notes=[*baseline.notes, *unrepeatable],
        baseline=baseline,
        memory_bytes=memory,
        launches=launches,
        host_bytes=host_bytes,
        free_device_bytes=free,
    )


def _rounds(worker: Worker, second: Worker) -> measure.Rounds:
    workers = {"eager": worker, "same": second}
    seconds = {name: one.prepare(StepKind.EAGER) for name, one in workers.items()}
    blocks = {name: functools.partial(one.block, kind=StepKind.EAGER) for name, one in workers.items()}
    return measure.interleave(blocks, seconds, LONGEST)


def _first_call_seconds(about: Description, results: Sequence[CallResult]) -> float:
    """Returns the seconds of the first call of each callable."""
    remaining = iter(results)
    seconds = 0.0
    for one in about.callables:
        first, *_ = [next(remaining) for _ in range(one.calls)]
        seconds += first.seconds + first.backward_seconds
    return seconds
