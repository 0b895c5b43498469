"""The program run eager: what the results of all ways are held against."""

from __future__ import annotations

import contextlib
import functools
import statistics
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from breakscan.bench.result import Eager
from breakscan.bench.variants import Choices
from breakscan.worker import timing as measure
from breakscan.worker.baseline import Baseline
from breakscan.worker.captured_words import other_calls, require_calls
from breakscan.worker.compare import ResultDifference
from breakscan.worker.timing import EAGER, Ratio
from breakscan.worker.worker import ProgramChange, UserProgram, Worker, WorkerError

LONGEST = 8.0
"""Seconds of timing."""


class EagerBaseline:
    """What two eager processes of a program come to, and how far they lie apart.  ``folder`` is new.

    ``steps`` are the seconds of eager steps: those of later processes are added to them.
    """

    def __init__(self, program: UserProgram, folder: Path) -> None:
        self.program = program
        self.folder = folder
        self.about: dict[str, Any] = {}
        self.notes: list[str] = []
        self.same: Ratio | None = None
        self.steps: list[float] = []
        self._reference: Baseline
        self._repeats = True
        self._first = 0.0
        self._memory: int | None = None
        self._launches: dict[str, int] | None = None

    def run(
        self, plan: Callable[[Choices], Sequence[Mapping[str, Any]]], say: Callable[[str], None]
    ) -> tuple[Choices, list[Any]]:
        """Returns what torch offers here, and what it takes each of the keyword arguments for that ``plan`` makes of
        that.  Raises NothingToMeasure and ArmError, and what ``plan`` raises."""
        say("running the program")
        with Worker(self.program, ProgramChange(), self.folder / "eager") as worker:
            self.about = worker.ready()
            require_calls(self.about)
            self._refer_to(worker)
            say("timing it eager")
            with Worker(self.program, ProgramChange(), self.folder / "second") as second:
                second.ready()
                choices = Choices(cuda="cuda" in self.about["devices"], **second.ask("choices"))
                meant = second.ask("meant", hows=[dict(how) for how in plan(choices)])
                self._see_whether_it_repeats(second)
                self._time(worker, second)
            self._memory = worker.ask("memory", kind=EAGER)
            with contextlib.suppress(WorkerError):
                self._launches = worker.ask("launches", kind=EAGER)
        return choices, meant

    @property
    def eager(self) -> Eager | None:
        """What is measured of eager runs until now."""
        if not self.steps:
            return None
        return Eager(self._first, statistics.median(self.steps), self._memory, self._launches)

    def other_than(self, about: Mapping[str, Any]) -> str | None:
        """How the program fails, or which calls it makes, in an arm in which it does not as here."""
        if about["error"] and about["error"] != self.about["error"]:
            error: str = about["error"]
            return error
        other = other_calls(about, self.about)
        return f"it makes {other}" if other else None

    def hand_over(self, worker: Worker) -> list[str]:
        """Gives an arm the values.  Returns in what they differ there."""
        return self._reference.hand_over(worker)

    def unlike(self, worker: Worker) -> list[ResultDifference]:
        """What the compiled results of an arm, written already, differ in from eager ones."""
        return self._reference.differences(self._reference.compiled(worker)) if self._repeats else []

    def note(self, what: str) -> None:
        """What the reader must know, once."""
        if what not in self.notes:
            self.notes.append(what)

    def _refer_to(self, worker: Worker) -> None:
        self._reference = Baseline(worker)
        self._reference.run([])
        self.notes += self._reference.notes
        outcomes = iter(self._reference.eager)
        for one in self.about["callables"]:
            first, *_ = [next(outcomes) for _ in range(one["calls"])]
            self._first += first["seconds"] + first["backward_seconds"]

    def _see_whether_it_repeats(self, second: Worker) -> None:
        problems = self._reference.unrepeatable(second)
        if problems:
            self._repeats = False
            self.notes.append(f"results were not compared, as the program does not repeat itself: {problems[0]}")

    def _time(self, worker: Worker, second: Worker) -> None:
        workers = {"eager": worker, "same": second}
        seconds = [one.ask("prepare", kind=EAGER) for one in workers.values()]
        blocks = {name: functools.partial(one.block, kind=EAGER) for name, one in workers.items()}
        times = measure.interleave(blocks, seconds, LONGEST)
        self.same = measure.ratio([times["eager"]], times["same"])
        self.steps = times["eager"] + times["same"]
