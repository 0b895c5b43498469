"""Where the values of a JSON text stand, so that one of them can be replaced and all others kept byte by byte."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

Span = tuple[int, int]
"""The index of the first character of a value, and that after its last one."""

_DECODER = json.JSONDecoder()
_BLANK = re.compile(r"\s*")


def value_start(text: str, at: int = 0) -> int:
    """The index of the first character from ``at`` on that is not blank."""
    blank = _BLANK.match(text, at)
    assert blank is not None
    return blank.end()


def members(text: str, at: int) -> dict[str, Span]:
    """The values of the object at an index of a valid JSON text, by key.  Of equal keys, the last one counts, as it
    does for :mod:`json`."""
    found: dict[str, Span] = {}
    at = value_start(text, at + 1)
    while text[at] != "}":
        key, at = _DECODER.raw_decode(text, at)
        start = value_start(text, value_start(text, at) + 1)
        _, end = _DECODER.raw_decode(text, start)
        found[key] = start, end
        at = _next(text, end)
    return found


def items(text: str, at: int) -> Iterator[Span]:
    """The values of the array at an index of a valid JSON text."""
    at = value_start(text, at + 1)
    while text[at] != "]":
        _, end = _DECODER.raw_decode(text, at)
        yield at, end
        at = _next(text, end)


def _next(text: str, end: int) -> int:
    """The start of what follows a value: the next one, or the end of what holds both."""
    at = value_start(text, end)
    return value_start(text, at + 1) if text[at] == "," else at
