"""Counts, lists, places, times and sizes, as every report writes them, groups, and the error that is one line."""

import re
from collections.abc import Iterable, Sequence
from enum import Enum
from typing import Protocol, TypeVar

from breakscan.model.findings import Place, Site

K = TypeVar("K")
V = TypeVar("V")
INSIDE = {Place.LOOP: "a loop", Place.TRY: "a try", Place.WITH: "a with block"}


class Worded(str, Enum):
    """A kind with the words for it, next to its value."""

    _value_: str
    words: str

    def __new__(cls, value: str, words: str) -> "Worded":
        member = str.__new__(cls, value)
        member._value_, member.words = value, words
        return member


class InputError(Exception):
    """An input cannot be used, or something is missing.  The text says why and what to do; the command exits with 2."""


def grouped(pairs: Iterable[tuple[K, V]]) -> dict[K, list[V]]:
    """The values of each key, in the order in which they come."""
    groups: dict[K, list[V]] = {}
    for key, value in pairs:
        groups.setdefault(key, []).append(value)
    return groups


def counted(number: int, one: str, many: str | None = None) -> str:
    """``1 file``, ``2 files``."""
    return f"{number} {one if number == 1 else many or one + 's'}"


def sentence(text: str) -> str:
    """The text, ending with one full stop."""
    return f"{text.strip().rstrip('. ')}."


def sentences(*parts: str | None) -> str:
    """The parts that are not empty, each ending with one full stop."""
    return " ".join(sentence(part) for part in parts if part and part.strip())


def listed(words: Sequence[str], noun: str, most: int = 3) -> str:
    """``a, b and c``; ``a, b and 4 more functions``."""
    words = list(dict.fromkeys(words))
    if len(words) > most:
        words = [*words[: most - 1], f"{len(words) - most + 1} more {noun}s"]
    return " and ".join(filter(None, [", ".join(words[:-1]), *words[-1:]]))


def first_few(words: Sequence[str], most: int, separator: str = ", ") -> str:
    """``a, b and 4 more``."""
    rest = f" and {len(words) - most} more" if len(words) > most else ""
    return separator.join(words[:most]) + rest


def clipped(text: str, most: int) -> str:
    """The text, of which at most so many characters are left."""
    return text if len(text) <= most else f"{text[: most - 1]}…"


def capitalized(text: str) -> str:
    return text[:1].upper() + text[1:]


_PACKAGES = re.compile(r"(?:.*/)?(?:(?:site|dist)-packages|lib(?=/python3))/")


class Line(Protocol):
    """An object with a line: a site, a caller, a known break."""

    @property
    def path(self) -> str: ...

    @property
    def line(self) -> int: ...


def place(at: Line) -> str:
    """``model.py:41``."""
    return f"{short_path(at.path)}:{at.line}"


def position(site: Site) -> str:
    """``model.py:41:9``."""
    return f"{place(site)}:{site.column}"


def short_path(path: str) -> str:
    """Shortens the path of an installed file to the part from its package on."""
    return _PACKAGES.sub("", path)


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


def megabytes(count: int) -> str:
    """``1,374 MB``."""
    return f"{count / 1e6:,.0f} MB"


def bytes_in_words(count: int) -> str:
    """``12 B``, ``1.4 MB``, ``2.0 GB``."""
    for size, unit in ((1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if count >= size:
            return f"{count / size:.1f} {unit}"
    return f"{count} B"
