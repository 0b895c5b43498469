"""Makes a program that fails as small as it can be, with pysource-minimize."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from pysource_minimize import CouldNotMinimize, minimize

from benchmarks.rewrite_fuzzer.comparing import Comparison, Fault, compare, time_limit

SECONDS = 10
"""The limit for one try, in CPU time: what is left of a program may take longer than the program."""
MOST_SECONDS = 120
"""The limit for all tries with a program, in CPU time."""
MOST_INPUTS = 2
"""The number of pairs of inputs that are tried: each try runs both sides for each."""


@dataclass(frozen=True)
class Shrunk:
    """A small program that still fails, by one rewrite if ``rewrite`` is not None."""

    text: str
    rewrite: str | None
    found: Comparison


def shrink(text: str, fails: Callable[[str], bool]) -> str:
    """Returns the smallest text found for which ``fails`` is true, or ``text``.

    A text for which ``fails`` raises, or takes too long, is not one that fails.
    """

    start = time.process_time()

    def still_fails(smaller: str) -> bool:
        if time.process_time() - start > MOST_SECONDS:
            return False
        try:
            with time_limit(SECONDS):
                return fails(smaller)
        except (Exception, KeyboardInterrupt):
            return False

    try:
        return minimize(text, still_fails, retries=0)
    except (CouldNotMinimize, ValueError):
        # ValueError: it does not fail again.
        return text


def shrink_fault(text: str, found: Comparison, *, unsafe: bool) -> Shrunk:
    """Shrinks a program while a fault of the same sort shows, by a single rewrite if one alone makes it."""
    fault = found.faults[0]
    wanted = {one.sort for one in found.faults if one.kind == fault.kind}
    names = list(dict.fromkeys(one.inputs for one in found.faults if one.kind == fault.kind))[:MOST_INPUTS]

    def same(smaller: str, only: str | None) -> Comparison | None:
        now = compare(smaller, unsafe=unsafe, only=only, inputs=names)
        faults = tuple(one for one in now.faults if one.sort in wanted)
        return Comparison(now.after, now.rewrites, now.stated, now.differs, faults) if faults else None

    rewrite = next((one for one in found.rewrites if same(text, one)), None)
    smallest = shrink(text, lambda smaller: same(smaller, rewrite) is not None)
    return Shrunk(smallest, rewrite, same(smallest, rewrite) or found)


def sort_of_fault(fault: Fault) -> str:
    """The first word of a kind: faults of one rewrite and one sort are mostly one fault."""
    return fault.kind.split()[0]
