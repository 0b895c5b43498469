"""The worker that provides the values of all others, and whose eager results are compared with theirs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from breakscan.prove.worker.call_result import CallResult, load_results
from breakscan.prove.worker.compare import Strictness, differences
from breakscan.prove.worker.difference import ResultDifference
from breakscan.prove.worker.protocol import (
    DigestCalls,
    Mismatch,
    RunCompiled,
    RunCompiledRandom,
    RunDouble,
    RunEager,
    SaveValues,
    StateDigests,
    TakeValues,
    ValueMismatch,
)
from breakscan.prove.worker.worker import Worker


@dataclass(frozen=True, slots=True)
class Unrepeatable:
    """The differences of a second process of the same program: values that it cannot take over, and results."""

    values: tuple[ValueMismatch, ...]
    results: tuple[ResultDifference, ...]

    def __bool__(self) -> bool:
        return bool(self.values or self.results)

    @property
    def first(self) -> ValueMismatch | ResultDifference:
        """The first difference, if there is one."""
        return self.values[0] if self.values else self.results[0]


class SavedValues:
    """The values of the calls of a worker, in a file."""

    def __init__(self, worker: Worker) -> None:
        self._path = _at(worker, "values")
        self._digests: tuple[StateDigests, ...] = worker.ask(SaveValues(self._path))

    def hand_over(self, worker: Worker) -> list[ValueMismatch]:
        """Gives the values to a worker. Returns those that it cannot take over, and those that still differ there."""
        problems = list(worker.ask(TakeValues(self._path)))
        if problems:
            return problems
        for own, other in zip(self._digests, worker.ask(DigestCalls()), strict=False):
            for mine, its in ((own.values, other.values), (own.generators, other.generators)):
                problems += [ValueMismatch(name, Mismatch.DIGEST) for name in mine if its.get(name) != mine[name]]
        return problems


class Baseline:
    """The results of the calls of a worker, run eager with the values that it saved.

    ``eager`` are the results, ``double`` those in double precision, ``no_double`` says why there are none.  ``random``
    says that random numbers are drawn, ``lines`` which lines of the ``watched`` files the calls execute.
    """

    def __init__(self, worker: Worker, values: SavedValues, watched: Sequence[str]) -> None:
        self.values = values
        path = _at(worker, "eager")
        run = worker.ask(RunEager(path, tuple(watched)))
        self.random = run.random
        self.lines: Mapping[str, tuple[int, ...]] = run.lines
        self.eager = load_results(path)
        self.double: list[CallResult] | None = None
        self.no_double: str | None = None
        if not self.random:
            exact = _at(worker, "double")
            self.no_double = worker.ask(RunDouble(exact))
            if self.no_double is None:
                self.double = load_results(exact)

    def unrepeatable(self, again: Worker) -> Unrepeatable:
        """Returns how another worker of the same program differs when it has the same values."""
        problems = self.values.hand_over(again)
        results, _ = run_eager(again, ())
        return Unrepeatable(tuple(problems), tuple(differences(self.eager, results, None, Strictness.EAGER)))

    def compiled(self, worker: Worker) -> dict[str, list[CallResult]]:
        """The results of a worker that has run its calls compiled: the first ones, and those after a row of calls.
        Inductor draws other random numbers than eager code: where any are drawn, a further run draws those of eager
        code."""
        found = {name: load_results(path) for name, path in _compiled_paths(worker).items()}
        if self.random:
            path = _at(worker, "random")
            worker.ask(RunCompiledRandom(path))
            found["random"] = load_results(path)
        return found

    def differences(self, runs: Mapping[str, list[CallResult]], types: bool = True) -> list[ResultDifference]:
        """How the results that :meth:`compiled` returns differ from the eager results.  Unless ``types``, a tensor may
        replace a number."""
        found: list[ResultDifference] = []
        for name, results in runs.items():
            drawn = name == "random"
            how = Strictness.COMPILED.but(random=drawn, values=drawn or not self.random, types=types)
            found += differences(self.eager, results, self.double, how)
        return found


def run_eager(worker: Worker, watched: Sequence[str]) -> tuple[list[CallResult], Mapping[str, tuple[int, ...]]]:
    """The eager results of a worker, and which lines of these files the calls execute."""
    path = _at(worker, "eager")
    run = worker.ask(RunEager(path, tuple(watched)))
    return load_results(path), run.lines


def run_compiled(worker: Worker, patient: bool = True) -> RunCompiled:
    """The command that runs the calls of a worker compiled, for :meth:`Baseline.compiled`."""
    return RunCompiled(**_compiled_paths(worker), patient=patient)


def _compiled_paths(worker: Worker) -> dict[str, str]:
    return {name: _at(worker, name) for name in ("first", "steady")}


def _at(worker: Worker, name: str) -> str:
    return str(worker.folder / f"{name}.pt")
