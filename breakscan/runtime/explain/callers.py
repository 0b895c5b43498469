"""A line that the program went through."""

from __future__ import annotations

from dataclasses import dataclass

from breakscan.findings import Origin


@dataclass(frozen=True, slots=True)
class Caller:
    """A line that the program went through, in the paths and names that reports show."""

    path: str
    line: int
    function: str | None
    origin: Origin
