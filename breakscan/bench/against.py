"""The program run eager: what the results and times of all ways are held against."""

from __future__ import annotations

import contextlib
import statistics
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from breakscan.arms import measure
from breakscan.arms.arm import Arm, ArmError, Change, Program
from breakscan.arms.compare import Difference, Plain, differences, load_outcomes
from breakscan.arms.measure import Ratio
from breakscan.bench.plan import Choices
from breakscan.bench.result import Eager

LONGEST = 8.0
"""Seconds that a way is timed: there are many."""


class NothingToMeasure(Exception):
    """The program cannot be measured.  Says why."""


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
        self._digests: dict[str, str] = {}
        self._outcomes: list[Plain] = []
        self._double: list[Plain] | None = None
        self._random = False
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
        self._require_calls()
        self._digests = self._arm.ask("save", path=self.values)
        told = self._arm.ask("eager", path=self._at("eager"), watched=[])
        self._random = told["random"]
        self._outcomes = load_outcomes(self._at("eager"))
        firsts = iter(self._outcomes)
        for one in self.about["callables"]:
            cases = [next(firsts) for _ in range(one["calls"])]
            self._first += cases[0]["seconds"] + cases[0]["backward_seconds"]
        if not self._random:
            problem = self._arm.ask("double", path=self._at("double"))
            if problem is None:
                self._double = load_outcomes(self._at("double"))
            else:
                self.notes.append(f"there is no reference in double precision: {problem}")

    def time(self, plan: Callable[[Choices], Sequence[Mapping[str, Any]]]) -> tuple[Choices, list[Any]]:
        """Measures eager steps, in two processes.  Returns what torch offers here, and what it takes each of the
        keyword arguments for that ``plan`` makes of that."""
        with Arm(self.program, Change(), self.folder / "second") as second:
            second.ready()
            choices = Choices(cuda="cuda" in self.about["devices"], **second.ask("choices"))
            meant = second.ask("meant", hows=[dict(how) for how in plan(choices)])
            self._see_whether_it_repeats(second)
            self._seconds = self._arm.ask("prepare", how={"eager": True})["seconds"]
            second.ask("prepare", how={"eager": True})
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

    @property
    def values(self) -> str:
        """The file with the values that all processes are given."""
        return str(self.folder / "values.pt")

    def require_alive(self) -> None:
        """Raises EagerLost where the arm has ended."""
        if self._arm.ended:
            last = next((line for line in reversed(self._arm.output().splitlines()) if line.strip()), "")
            raise EagerLost(f"the eager process has ended{f': {last.strip()[:200]}' if last else ''}")

    def hand_over(self, arm: Arm) -> list[str]:
        """Gives an arm the values.  Returns in what they differ there."""
        told = arm.ask("take", path=self.values)
        problems: list[str] = list(told["problems"])
        if not problems:
            digests = arm.ask("digests")
            problems += [name for name, digest in self._digests.items() if digests.get(name) != digest]
        return problems

    def unlike(self, arm: Arm) -> list[Difference]:
        """What the compiled results of an arm, written already, differ in from eager ones.  Where random numbers are
        drawn, Inductor's own are others: values are compared of a run in which it draws eager code's."""
        if not self._repeats:
            return []
        runs = {name: load_outcomes(str(arm.folder / f"{name}.pt")) for name in ("first", "steady")}
        if self._random:
            path = str(arm.folder / "random.pt")
            arm.ask("compiled_random", path=path)
            runs["random"] = load_outcomes(path)
        found: list[Difference] = []
        for name, outcomes in runs.items():
            drawn = name == "random"
            values = drawn or not self._random
            found += differences(self._outcomes, outcomes, self._double, strict=False, random=drawn, values=values)
        return found

    def _see_whether_it_repeats(self, second: Arm) -> None:
        problems = self.hand_over(second)
        path = str(second.folder / "eager.pt")
        second.ask("eager", path=path, watched=[])
        problems += [one.text for one in differences(self._outcomes, load_outcomes(path), None, strict=True)]
        if problems:
            self._repeats = False
            self.notes.append(f"results were not compared, as the program does not repeat itself: {problems[0]}")

    def _at(self, name: str) -> str:
        return str(self.folder / f"{name}.pt")

    def _require_calls(self) -> None:
        error = self.about["error"]
        if self.about["callables"]:
            if error:
                self.notes.append(f"the program failed behind the captured calls: {error}")
            return
        if error:
            raise NothingToMeasure(f"the program failed before it called anything compiled: {error}")
        if self.about["not_called"]:
            names = ", ".join(self.about["not_called"])
            raise NothingToMeasure(f"the program called nothing that it had compiled ({names} was never called)")
        raise NothingToMeasure(
            "the program compiles nothing: torch.compile was not called (--compile module:name asks)"
        )


def other_calls(about: Mapping[str, Any], reference: Mapping[str, Any]) -> str | None:
    """In what the calls of an arm are others than those of the reference."""
    for key, words in (("callables", "calls"), ("modes", "modes"), ("backward", "ways back")):
        if about[key] != reference[key]:
            return f"the program makes other {words} with it"
    return None
