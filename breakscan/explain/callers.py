"""A line that the program went through."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from breakscan.model.findings import Origin


@dataclass(frozen=True, slots=True)
class Caller:
    """A line that the program went through, in the paths and names that reports show."""

    path: str
    line: int
    function: str | None
    origin: Origin


def users_line(stack: Sequence[Caller]) -> Caller | None:
    """The innermost line of the user's code in a stack whose outermost line comes first."""
    return next((caller for caller in reversed(stack) if caller.origin is Origin.USER), None)
