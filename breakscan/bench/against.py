"""The program run eager: what the results and times of all ways are held against."""

from __future__ import annotations

import contextlib
import statistics
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from breakscan.arms import measure
from breakscan.arms.arm import Arm, ArmError, Change, Program
from breakscan.arms.captured import require_calls
from breakscan.arms.compare import Difference
from breakscan.arms.measure import Ratio
from breakscan.arms.reference import Reference
from breakscan.bench.plan import Choices
from breakscan.bench.result import Eager

LONGEST = 8.0
"""Seconds that a way is timed: there are many."""


class EagerLost(Exception):
    """The eager process has ended: nothing can be compared any more.  Says how."""


class Against:
    """An arm that stays, and for a while a second one like it, which shows how far two equal processes lie apart.
    ``folder`` is new.  To be entered."""

    def __init__(self, program: Program, folder: Path) -> None:
        self.program = program
        self.folder = folder
        self.about: dict[str, Any] = {}
        self.notes: list[str] = []
        self.same: Ratio | None = None
        self._arms = contextlib.ExitStack()
        self._arm: Arm
        self._reference: Reference
        self._repeats = True
        self._steps: list[float] = []
        self._seconds = 0.0
        self._first = 0.0
        self._memory: int | None = None
        self._launches: dict[str, int] | None = None

    def __enter__(self) -> Against:
        return self

    def __exit__(self, *error: Any) -> None:
        self._arms.__exit__(*error)

    def start(self) -> None:
        """Runs the program up to its captured calls.  Raises NothingToMeasure and ArmError."""
        self._arm = self._arms.enter_context(Arm(self.program, Change(), self.folder / "eager"))
        self.about = self._arm.ready()
        require_calls(self.about)
        self._reference = Reference(self._arm)
        self._reference.run([])
        self.notes += self._reference.notes
        outcomes = iter(self._reference.eager)
        for one in self.about["callables"]:
            first, *_ = [next(outcomes) for _ in range(one["calls"])]
            self._first += first["seconds"] + first["backward_seconds"]

    def time(self, plan: Callable[[Choices], Sequence[Mapping[str, Any]]]) -> tuple[Choices, list[Any]]:
        """Measures eager steps, in two processes.  Returns what torch offers here, and what it takes each of the
        keyword arguments for that ``plan`` makes of that."""
        with Arm(self.program, Change(), self.folder / "second") as second:
            second.ready()
            choices = Choices(cuda="cuda" in self.about["devices"], **second.ask("choices"))
            meant = second.ask("meant", hows=[dict(how) for how in plan(choices)])
            self._see_whether_it_repeats(second)
            self._seconds = self._arm.ask("prepare", eager=True)["seconds"]
            second.ask("prepare", eager=True)
            times = measure.interleave({"eager": self._arm, "same": second}, self._seconds, LONGEST)
            self.same = measure.ratio([times["eager"]], times["same"])
            self._steps = times["eager"] + times["same"]
            self._memory = self._arm.ask("memory")
        return choices, meant

    def interleaved(self, arm: Arm, seconds: float) -> dict[str, list[float]]:
        """The seconds of steps, of ``eager`` and of the ``way``.  Raises Unsteady."""
        times = measure.interleave({"eager": self._arm, "way": arm}, max(seconds, self._seconds), LONGEST)
        self._steps += times["eager"]
        return times

    def count_launches(self) -> None:
        """To be called when nothing is timed any more: the profiler slows down the process."""
        with contextlib.suppress(ArmError):
            self._launches = self._arm.ask("launches")

    @property
    def eager(self) -> Eager | None:
        """What is measured of eager runs until now."""
        if not self._steps:
            return None
        return Eager(self._first, statistics.median(self._steps), self._memory, self._launches)

    def require_alive(self) -> None:
        """Raises EagerLost where the arm has ended."""
        if self._arm.ended:
            last = next((line for line in reversed(self._arm.output().splitlines()) if line.strip()), "")
            raise EagerLost(f"the eager process has ended{f': {last.strip()[:200]}' if last else ''}")

    def hand_over(self, arm: Arm) -> list[str]:
        """Gives an arm the values.  Returns in what they differ there."""
        return self._reference.hand_over(arm)

    def unlike(self, arm: Arm) -> list[Difference]:
        """What the compiled results of an arm, written already, differ in from eager ones."""
        return self._reference.differences(self._reference.compiled(arm)) if self._repeats else []

    def note(self, what: str) -> None:
        """What the reader must know, once."""
        if what not in self.notes:
            self.notes.append(what)

    def _see_whether_it_repeats(self, second: Arm) -> None:
        problems = self._reference.unrepeatable(second)
        if problems:
            self._repeats = False
            self.notes.append(f"results were not compared, as the program does not repeat itself: {problems[0]}")
