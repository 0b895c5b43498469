"""The result of ``fix``, and the differences that an edit makes: what a user could see change, besides speed."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from breakscan.model.findings import CheckTarget, Finding, SourceError


class Effect(Enum):
    """A kind of change that a user could notice."""

    VALUES = "values"
    DTYPES = "dtypes"
    SHAPES = "shapes"
    STRIDES = "strides"
    STORAGE = "storage"
    """Storage that tensors share, and so the tensors that an in-place operation changes."""
    TYPES = "types"
    """A tensor instead of a Python number or bool, or the other way round."""
    GRADIENTS = "gradients"
    RAISES = "new exceptions"
    """An exception where there was none, or an earlier one."""
    NO_LONGER_RAISES = "missing exceptions"
    """No exception where there was one, or a later one."""
    OUTPUT = "output"
    """Printed text, log messages and warnings."""
    STATE = "state"
    """Changed arguments, attributes and globals, or properties that run."""
    RANDOM = "random numbers"


EXCEPTIONS = frozenset({Effect.RAISES, Effect.NO_LONGER_RAISES})
"""Both together are another type of exception."""


@dataclass(frozen=True, slots=True)
class Difference:
    """``text`` describes it, without a period at the end.  ``effects`` are what it may change directly."""

    text: str
    effects: frozenset[Effect]


def differs(text: str, *effects: Effect) -> Difference:
    return Difference(in_one_line(text), frozenset(effects))


_FOLLOWS: Mapping[Effect, frozenset[Effect]] = {
    Effect.VALUES: frozenset({Effect.GRADIENTS, Effect.STATE, Effect.OUTPUT}),
    Effect.RANDOM: frozenset({Effect.VALUES}),
    Effect.STATE: frozenset({Effect.VALUES}),
    Effect.STORAGE: frozenset({Effect.VALUES, Effect.STATE, Effect.STRIDES}),
    Effect.DTYPES: frozenset({Effect.VALUES}) | EXCEPTIONS,
    Effect.SHAPES: frozenset({Effect.VALUES, Effect.STRIDES, Effect.STORAGE}) | EXCEPTIONS,
    Effect.TYPES: frozenset({Effect.DTYPES, Effect.SHAPES, Effect.STORAGE}),
}
"""The effects that follow in the rest of a program: it computes with the values, and stops at an exception.  A tensor
with storage of its own has strides of its own."""


def effects_of(differences: Iterable[Difference]) -> frozenset[Effect]:
    """The effects of differences, and what follows from them. Nothing follows from exceptions: they end the program."""
    found = {effect for one in differences for effect in one.effects}
    queue = [one for one in found if one not in EXCEPTIONS]
    for one in queue:
        more = _FOLLOWS.get(one, frozenset()) - found
        found |= more
        queue += more - EXCEPTIONS
    return frozenset(found)


def assumes(text: str) -> Difference:
    """An assumption that is not known to hold: if it does not, anything may change."""
    return Difference(in_one_line(text), frozenset(Effect))


MOST_QUOTED = 60
"""The length up to which code is quoted in full."""


def in_one_line(text: str) -> str:
    """A text in which the code that it quotes has one line, and no more than :data:`MOST_QUOTED` characters."""
    return _LONG.sub(lambda code: f"{code[0][: MOST_QUOTED - 2]}…`", " ".join(text.split()))


_LONG = re.compile(rf"`[^`]{{{MOST_QUOTED - 1},}}`")


@dataclass(frozen=True, slots=True)
class Applied:
    """A finding that a rewrite fixed.  ``differences`` are its effects besides speed."""

    finding: Finding
    rewrite: str
    differences: tuple[Difference, ...] = ()

    @property
    def difference(self) -> str | None:
        """The differences in words; None for a safe rewrite."""
        return "; ".join(one.text for one in self.differences) or None


@dataclass(frozen=True, slots=True)
class Reason:
    """The reason why a rewrite declines. ``near`` is False for code of another form, and for a last resort; ``against``
    says that it speaks against the advice of the rule, too."""

    rewrite: str
    text: str
    near: bool = True
    against: bool = True


@dataclass(frozen=True, slots=True)
class Refused:
    """A finding that stays, with the reason of each rewrite that was tried."""

    finding: Finding
    reasons: tuple[Reason, ...]

    @property
    def main(self) -> Reason:
        """The reason of the first rewrite that comes near to the code."""
        unknown = Reason("", "no edit is known for code of this form", near=False, against=False)
        return next((one for one in self.reasons if one.near), unknown)


@dataclass(frozen=True, slots=True)
class FileRepair:
    """The repair of one file.

    Sites are those of ``before``, the text of ``data``; ``path`` is absolute.  ``safe`` is the text with the safe edits
    alone, ``after`` that with all that are wanted.  ``without`` are findings of rules that offer no rewrite."""

    path: Path
    display: str
    data: bytes = b""
    before: str = ""
    safe: str = ""
    after: str = ""
    applied: tuple[Applied, ...] = ()
    refused: tuple[Refused, ...] = ()
    without: tuple[Finding, ...] = ()
    errors: tuple[SourceError, ...] = ()

    @property
    def changed(self) -> bool:
        return self.before != self.after

    def text(self, unsafe: bool) -> str:
        """The text to write: with the safe edits, or with all."""
        return self.after if unsafe else self.safe


@dataclass(frozen=True, slots=True)
class Repair:
    """The repairs of all files that hold findings, in the order of their paths.  ``files`` were checked."""

    files: tuple[FileRepair, ...]
    errors: tuple[SourceError, ...]
    checked: int
    targets: tuple[CheckTarget, ...]
