"""Times in words."""

from __future__ import annotations

UNITS = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"))


def duration(seconds: float) -> str:
    """``1.2 ms``."""
    size, unit = _unit(seconds)
    return f"{_digits(seconds / size)} {unit}"


def part_of(part: float, whole: float) -> str:
    """``5.1 of 11.8 ms``."""
    size, unit = _unit(whole)
    return f"{_digits(part / size)} of {_digits(whole / size)} {unit}"


def seconds_in_words(seconds: float) -> str:
    """``41 ms``, ``3.2 s``, ``90 s``, ``25 min``, ``3.4 h``."""
    if seconds < 0.1:
        return f"{seconds * 1000:.0f} ms"
    if seconds < 600:
        return f"{seconds:.0f} s" if seconds >= 10 else f"{seconds:.1f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"


def _unit(seconds: float) -> tuple[float, str]:
    return next(((size, unit) for size, unit in UNITS if seconds >= size), UNITS[-1])


def _digits(number: float) -> str:
    return f"{number:.0f}" if number >= 99.5 else f"{number:.1f}"
