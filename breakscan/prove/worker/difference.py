"""The difference between the results of two calls, as data; ``reports/shared/difference_words.py`` words it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Part(str, Enum):
    """The part of a result that differs."""

    OUTPUT = "output"
    GRADIENT = "gradient"
    STATE = "state"
    RANDOM = "random"
    EXCEPTION = "exception"
    CALLS = "calls"


class Change(str, Enum):
    """The kind of a difference."""

    CALL_COUNT = "call-count"
    RAISES = "raises"
    NO_BACKWARD = "no-backward"
    MISSING = "missing"
    NEW = "new"
    DTYPE = "dtype"
    SHAPE = "shape"
    ELEMENT = "element"
    """An element of a tensor of integers or bools differs."""
    ERROR = "error"
    """The error of an element is larger than allowed."""
    TEXT = "text"
    """A part that is not a tensor has another value, or only one of both is a tensor."""
    ALIAS = "alias"
    DRAWN = "drawn"


@dataclass(frozen=True, slots=True)
class ResultDifference:
    """``was`` belongs to the result that counts as correct, ``now`` to the other one; None where there is nothing.

    ``path`` names the value (or a list of generators), ``at`` the worst element, ``size`` its error, ``allowed`` the
    tolerance.  ``call`` counts from 0; ``message`` is that of the exception.
    """

    part: Part
    change: Change
    path: str = ""
    was: str | None = None
    now: str | None = None
    at: tuple[int, ...] = ()
    size: float | None = None
    allowed: float | None = None
    message: str = ""
    call: int = 0
