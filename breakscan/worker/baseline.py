"""The arm whose values all others are given, and whose eager results theirs are held against."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from breakscan.worker.compare import Plain, ResultDifference, differences, load_outcomes
from breakscan.worker.worker import Worker


class Baseline:
    """``eager`` are the outcomes of its calls run eager, ``double`` those in double precision, where there are any;
    ``random`` says that random numbers are drawn; ``notes`` what the reader must know."""

    def __init__(self, worker: Worker) -> None:
        self.worker = worker
        self.eager: list[Plain] = []
        self.double: list[Plain] | None = None
        self.random = False
        self.notes: list[str] = []
        self._digests: dict[str, str] = worker.ask("save", path=self._values)

    @property
    def _values(self) -> str:
        return _at(self.worker, "values")

    def hand_over(self, worker: Worker) -> list[str]:
        """Gives an arm the values.  Returns what it cannot take, and what differs there then."""
        problems: list[str] = list(worker.ask("take", path=self._values))
        if not problems:
            digests = worker.ask("digests")
            problems += [
                f"{name.partition('.')[2].partition('.')[2] or name} differs after it was handed over"
                for name, digest in self._digests.items()
                if digests.get(name) != digest
            ]
        return problems

    def run(self, watched: Sequence[str]) -> dict[str, list[int]]:
        """Runs the calls eager.  Returns which lines of these files they execute."""
        path = _at(self.worker, "eager")
        told = self.worker.ask("eager", path=path, watched=list(watched))
        self.random = told["random"]
        self.eager = load_outcomes(path)
        if not self.random:
            exact = _at(self.worker, "double")
            problem = self.worker.ask("double", path=exact)
            if problem is None:
                self.double = load_outcomes(exact)
            else:
                self.notes.append(f"there is no reference in double precision: {problem}")
        lines: dict[str, list[int]] = told["lines"]
        return lines

    def unrepeatable(self, again: Worker) -> list[str]:
        """In what another arm of the same program, given the same values, comes to something else."""
        problems = self.hand_over(again)
        path = _at(again, "eager")
        again.ask("eager", path=path, watched=[])
        return [*problems, *(one.text for one in differences(self.eager, load_outcomes(path), None, strict=True))]

    def compiled(self, worker: Worker) -> dict[str, list[Plain]]:
        """What an arm came to that has run its calls compiled: at first, and behind a row of calls.  Where random
        numbers are drawn, Inductor's own are others: a further run draws those of eager code."""
        found = {name: load_outcomes(_at(worker, name)) for name in ("first", "steady")}
        if self.random:
            path = _at(worker, "random")
            worker.ask("compiled_random", path=path)
            found["random"] = load_outcomes(path)
        return found

    def differences(self, runs: Mapping[str, list[Plain]]) -> list[ResultDifference]:
        """Of what :meth:`compiled` returns from the eager results."""
        found: list[ResultDifference] = []
        for name, outcomes in runs.items():
            drawn = name == "random"
            values = drawn or not self.random
            found += differences(self.eager, outcomes, self.double, strict=False, random=drawn, values=values)
        return found


def compiled_paths(worker: Worker) -> dict[str, Any]:
    """Where an arm that runs its calls compiled is to write what :meth:`Reference.compiled` reads."""
    return {name: _at(worker, name) for name in ("first", "steady")}


def _at(worker: Worker, name: str) -> str:
    return str(worker.folder / f"{name}.pt")
