"""Compares the results of a process with those of the unchanged program, in the process that has them."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from breakscan.prove.call_result import CallResult
from breakscan.prove.call_runs import Results
from breakscan.prove.equal import Change, Expected, Noise, Part, ResultDifference
from breakscan.prove.protocol import RunKind
from breakscan.prove.state import read_file, write_file
from breakscan.prove.torch_state import plain_modes


@dataclass(frozen=True)
class Compared:
    """The differences of some runs, and how far values are apart.

    ``varying`` are those that no rounding explains if the program is the unchanged one; that of a Python number, a
    text, a file or the environment is one of ``unlike``.  ``printed`` are the texts of the first call that prints
    another one, ``same_parts`` says that the first call returns the same parts, and ``same_bits`` that nothing differs
    at all.
    """

    differences: tuple[ResultDifference, ...]
    distances: tuple[Noise, ...]
    varying: tuple[ResultDifference, ...]
    unlike: tuple[ResultDifference, ...]
    printed: tuple[str, ...] | None
    same_parts: bool
    same_bits: bool


class Comparison:
    """``results`` are those of the runs of this process, which go once they are compared."""

    def __init__(self, results: Results) -> None:
        self._results = results
        self._expected: Expected | None = None

    def keep(self, path: str) -> None:
        """Writes the eager results, and those in higher precision if there are any: they are the expected ones."""
        with plain_modes():
            expected = Expected(self._results.pop(RunKind.EAGER), self._results.pop(RunKind.EXACT, None))
            # What takes long is done once.
            _ = expected.sizes
            write_file(expected, path)

    def compare(self, path: str, kinds: tuple[RunKind, ...], noise: tuple[Noise, ...], moves: bool) -> Compared:
        """Compares runs of these kinds, all eager or all compiled, with the expected results in a file.  ``moves`` says
        that parts of results may be at other places."""
        differences: list[ResultDifference] = []
        varying: list[ResultDifference] = []
        unlike: list[ResultDifference] = []
        distances: list[Noise] = []
        is_exact = kinds == (RunKind.EXACT,)
        with self.expected(path, noise) as expected:
            expected.moves = moves
            runs = [self._results.pop(kind, []) for kind in kinds]
            for kind, results in zip(kinds, runs, strict=True):
                if is_exact:
                    found = expected.differences_when_exact(results)
                else:
                    found = expected.differences(results, eager=kind is RunKind.EAGER)
                differences += found
                for one in found:
                    if _is_unlike(one, expected.results):
                        unlike.append(one)
                    elif one.change is not Change.ERROR or expected.drowns(one.part, one.path):
                        varying.append(one)
                distances += expected.distances(is_exact)
            pairs = list(zip(expected.results, runs[0], strict=False))
        printed = next(((one.printed, other.printed) for one, other in pairs if one.printed != other.printed), None)
        return Compared(
            tuple(differences),
            tuple(distances),
            tuple(varying),
            tuple(unlike),
            printed,
            all(one.others.keys() == other.others.keys() for one, other in pairs[:1]),
            not differences and not distances,
        )

    def compare_call(self, path: str, number: int, noise: tuple[Noise, ...]) -> tuple[ResultDifference, ...]:
        """Compares the last result of the last run with that of the call with this number."""
        result = self._results.pop(RunKind.OTHERWISE)[-1]
        with self.expected(path, noise) as expected:
            results = [*expected.results[:number], result, *expected.results[number + 1 :]]
            return tuple(expected.differences(results, eager=False))

    @contextlib.contextmanager
    def expected(self, path: str, noise: Sequence[Noise]) -> Iterator[Expected]:
        """Yields the expected results of a file, with this noise, and with the modes to compare them in."""
        with plain_modes():
            self._expected = self._expected or read_file(path)
            assert self._expected is not None
            self._expected.know(noise)
            yield self._expected


def _is_unlike(difference: ResultDifference, results: Sequence[CallResult]) -> bool:
    """Return True if a Python number or a text differs, which does not have to repeat itself: a time, a number of the
    process."""
    if difference.part is Part.OUTSIDE:
        return True
    result = results[difference.call]
    kind = {Part.OUTPUT: result.others, Part.STATE: result.changes}.get(difference.part, {}).get(difference.path)
    return bool(kind) and difference.change in (Change.ERROR, Change.ELEMENT, Change.TEXT)
