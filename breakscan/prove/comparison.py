"""Compares the results of a process with those of the unchanged program, in the process that has them."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from breakscan.prove.call_result import CallResult
from breakscan.prove.equal import Change, Expected, Noise, Part, ResultDifference
from breakscan.prove.state import read_file
from breakscan.prove.torch_state import plain_modes


@dataclass(frozen=True)
class Reference:
    """The expected results: those of the unchanged program are in the file ``path``, with the ``noise`` of further runs
    of it."""

    path: str
    noise: tuple[Noise, ...] = ()

    @contextlib.contextmanager
    def opened(self) -> Iterator[Expected]:
        """Yields the expected results, in the modes in which they are compared."""
        with plain_modes():
            if self.path not in _OPEN:
                _OPEN[self.path] = read_file(self.path)
            expected = _OPEN[self.path]
            expected.know(self.noise)
            yield expected


_OPEN: dict[str, Expected] = {}


@dataclass(frozen=True)
class Compared:
    """The differences of a run, and how far values are apart.

    ``varying`` are those that no rounding explains if the program is the unchanged one; that of a Python number, a
    text, a file or the environment is one of ``unlike``.  ``printed`` are the texts of the first call that prints
    another one, and ``same_parts`` says that the first call returns the same parts.
    """

    differences: tuple[ResultDifference, ...]
    distances: tuple[Noise, ...]
    varying: tuple[ResultDifference, ...] = ()
    unlike: tuple[ResultDifference, ...] = ()
    printed: tuple[str, ...] | None = None
    same_parts: bool = True


def compare(reference: Reference, results: Sequence[CallResult], eager: bool, moves: bool | None = None) -> Compared:
    """Compares the results of all calls.  ``moves`` says if parts of results may be at other places, from now on."""
    with reference.opened() as expected:
        expected.moves = expected.moves if moves is None else moves
        found = expected.differences(results, eager)
        unlike = [one for one in found if _is_unlike(one, expected.results)]
        varying = [
            one
            for one in found
            if one not in unlike and (one.change is not Change.ERROR or expected.drowns(one.part, one.path))
        ]
        pairs = list(zip(expected.results, results, strict=False))
        return Compared(
            tuple(found),
            tuple(expected.distances()),
            tuple(varying),
            tuple(unlike),
            next(((one.printed, other.printed) for one, other in pairs if one.printed != other.printed), None),
            all(one.others.keys() == other.others.keys() for one, other in pairs[:1]),
        )


def compare_exact(reference: Reference, results: Sequence[CallResult]) -> Compared:
    """Compares the results of all calls in higher precision."""
    with reference.opened() as expected:
        return Compared(tuple(expected.differences_when_exact(results)), tuple(expected.distances(exact=True)))


def compare_call(reference: Reference, number: int, result: CallResult) -> Compared:
    """Compares the compiled result of the call with this number."""
    with reference.opened() as expected:
        results = [*expected.results[:number], result, *expected.results[number + 1 :]]
    return compare(reference, results, eager=False)


def _is_unlike(difference: ResultDifference, results: Sequence[CallResult]) -> bool:
    """Return True if a Python number or a text differs, which does not have to repeat itself: a time, a number of the
    process."""
    result = results[difference.call]
    kind = {Part.OUTPUT: result.others, Part.STATE: result.changes}.get(difference.part, {}).get(difference.path)
    is_text = bool(kind) and difference.change in (Change.ERROR, Change.ELEMENT, Change.TEXT)
    return difference.part is Part.OUTSIDE or is_text
