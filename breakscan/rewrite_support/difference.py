"""The differences that an edit makes: what a user could see change, and what is no longer compiled."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Effect(Enum):
    """What a user could see change."""

    VALUES = "values"
    DTYPES = "dtypes"
    SHAPES = "shapes"
    STRIDES = "strides"
    STORAGE = "storage"
    """Which tensors share storage, and so which tensors an in-place operation changes."""
    TYPES = "types"
    """A tensor instead of a Python number or bool, or the other way round."""
    GRADIENTS = "gradients"
    EXCEPTIONS = "exceptions"
    OUTPUT = "output"
    """Printed text, log messages and warnings."""
    STATE = "state"
    """Changed arguments, attributes and globals, or properties that run."""
    RANDOM = "random numbers"


@dataclass(frozen=True, slots=True)
class Difference:
    """``text`` describes it, without a period at the end.  ``effects`` are what it may change directly."""

    text: str
    effects: frozenset[Effect]


@dataclass(frozen=True, slots=True)
class TakenOut:
    """The tensor operations in some code, one for each place; not complete if a value is unknown."""

    operations: tuple[str, ...]
    is_complete: bool


def differs(text: str, *effects: Effect) -> Difference:
    """A difference with some effects."""
    return Difference(_in_one_line(text), frozenset(effects))


def assumes(text: str) -> Difference:
    """An assumption that is not known to hold: if it does not, anything may change."""
    return Difference(_in_one_line(text), frozenset(Effect))


def _in_one_line(text: str) -> str:
    """A text in which the code that it quotes has one line."""
    return " ".join(text.split())
