"""The program run eager in two processes. Its results and times are the baseline of all variants of ``bench``."""

from __future__ import annotations

import contextlib
import statistics
from collections.abc import Callable, Mapping, Sequence
from itertools import chain

from breakscan.prove import faster as measure
from breakscan.prove.bench_result import Eager
from breakscan.prove.candidate import MeasuringProgress, MeasuringStep, Say
from breakscan.prove.commands import CommandHandler
from breakscan.prove.equal import ResultDifference
from breakscan.prove.observation import Observation, ObservationKind
from breakscan.prove.original import Baseline, Original
from breakscan.prove.protocol import CompileOption, StepKind
from breakscan.prove.step_timer import StepTimer
from breakscan.prove.variants import Choices
from breakscan.prove.worker import Worker, WorkerError

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
        self._baseline = Baseline(first, original.values, ())
        self.choices = Choices(second.ask(CommandHandler.choices), "cuda" in self.about.devices)
        planned = tuple(dict(options) for options in plan(self.choices))
        self.resolved = second.ask(CommandHandler.resolve, planned)
        self._baseline.repeat(second)
        say(MeasuringProgress(MeasuringStep.TIME))
        rounds = measure.race({"eager": first, "same": second}, StepKind.EAGER, LONGEST)
        self.same = rounds.ratio("same", "eager")
        self.steps = list(chain(*rounds.seconds.values()))
        self.host_bytes = first.host_bytes
        self.memory_bytes = first.ask(StepTimer.memory, StepKind.EAGER)
        self.free_device_bytes = first.ask(CommandHandler.free_memory)
        self._launches: Mapping[str, int] | None = None
        with contextlib.suppress(WorkerError):
            self._launches = first.ask(StepTimer.launches, StepKind.EAGER)
        self.notes = self._baseline.notes
        if self._baseline.unrepeatable is not None:
            self.note(Observation(ObservationKind.NOT_COMPARED, details=(self._baseline.unrepeatable,)))

    @property
    def eager(self) -> Eager:
        """Returns the measurements of eager runs so far."""
        results = iter(self._baseline.eager)
        seconds = 0.0
        for one in self.about.callables:
            first, *_ = [next(results) for _ in range(one.calls)]
            seconds += first.seconds + first.backward_seconds
        return Eager(seconds, statistics.median(self.steps), self.memory_bytes, self._launches)

    def unlike(self, worker: Worker) -> list[ResultDifference]:
        """Returns how the compiled results that a worker has written differ from eager ones."""
        return [] if self._baseline.unrepeatable else self._baseline.compiled_differences(worker)

    def note(self, observation: Observation) -> None:
        """Adds a note, unless it was added before."""
        if observation not in self.notes:
            self.notes.append(observation)
