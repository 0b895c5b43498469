"""What is no longer as it was after an edit: what a user could see change, and what is no longer compiled."""

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
    """Which tensors share storage, and so which of them a write changes."""
    TYPES = "types"
    """A tensor in the place of a Python number or bool, or the other way round."""
    GRADIENTS = "gradients"
    EXCEPTIONS = "exceptions"
    OUTPUT = "output"
    """What is printed, logged or warned."""
    STATE = "state"
    """Arguments, attributes and globals that are written to, or properties that run."""
    RANDOM = "random numbers"


@dataclass(frozen=True, slots=True)
class Difference:
    """``text`` says it, as the end of a sentence without a full stop.  ``effects`` are what it may change directly."""

    text: str
    effects: frozenset[Effect]


@dataclass(frozen=True, slots=True)
class TakenOut:
    """The operations on tensors in some code, each once for each place; not complete where a value is unknown."""

    operations: tuple[str, ...]
    is_complete: bool


def differs(text: str, *effects: Effect) -> Difference:
    """A difference with some effects."""
    return Difference(text, frozenset(effects))


def assumes(text: str) -> Difference:
    """Something that must hold and is not known: where it does not, anything may change."""
    return Difference(text, frozenset(Effect))
