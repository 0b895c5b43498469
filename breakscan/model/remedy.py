"""A remedy: one thing to do about a problem of a run or a finding of ``check``."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum

COMPILE = "torch.compile"  # the owner of settings that are arguments of ``torch.compile``
DYNAMO = "torch._dynamo.config"
_LITERAL = re.compile(r"True|False|\d+")


class RemedyKind(str, Enum):
    EDIT = "edit"  # the code, in a way that ``fix`` can write
    SETTING = "setting"  # a setting of torch or of a library
    SHAPES = "shapes"  # sizes, or marks of sizes for the compiler
    REGION = "region"  # the part of the program that is compiled
    CONSTRUCT = "construct"  # the code, by hand
    NOTHING = "nothing"  # nothing need be done


@dataclass(frozen=True, slots=True)
class Setting:
    """An attribute of a configuration of torch, or an argument of ``torch.compile``; ``value`` as Python writes it, in
    parentheses for a function that sets it."""

    owner: str
    name: str
    value: str

    def __str__(self) -> str:
        """``torch._dynamo.config.capture_scalar_outputs = True``; ``torch.compile(..., dynamic=True)``."""
        if self.owner == COMPILE:
            return f"{COMPILE}(..., {self.name}={self.value})"
        return f"{self.owner}.{self.name}{self.assigned}"

    @property
    def assigned(self) -> str:
        """The code after its name."""
        return self.value if self.value.startswith("(") else f" = {self.value}"


@dataclass(frozen=True, slots=True)
class NewLine:
    """A line of code to write, before the statement at a line of a file."""

    path: str
    line: int
    code: str


@dataclass(frozen=True, slots=True)
class Remedy:
    """One thing to do.  ``name`` identifies it, as a heading of ``docs/remedies.md`` or a rule does; ``text`` is a
    clause for people, without a full stop.  ``settings``, ``write`` and ``rewrites`` (ids, in the order in which
    ``fix`` tries them) are what it changes, if that can be written down; ``tried``: it was tried on this program."""

    kind: RemedyKind
    name: str
    text: str
    settings: tuple[Setting, ...] = ()
    write: NewLine | None = None
    rewrites: tuple[str, ...] = ()
    tried: bool = False

    @property
    def command(self) -> str | None:
        """The command that tries it on a program, whose name follows."""
        if self.rewrites:
            return f"breakscan verify --rewrite {','.join(self.rewrites)}"
        return " ".join(["breakscan verify", *self.arguments]) if self.arguments else None

    @property
    def arguments(self) -> list[str]:
        """The arguments of ``breakscan verify`` for settings that it can try."""
        if not all(setting.owner == DYNAMO and _LITERAL.fullmatch(setting.value) for setting in self.settings):
            return []
        return [f"--config={setting.name}={setting.value}" for setting in self.settings]

    @property
    def words(self) -> str:
        """The text, with the command that tries a setting."""
        return f"{self.text} ('{self.command} PROGRAM' tries it)" if self.settings and self.command else self.text


def remedies_in_words(remedies: Iterable[Remedy]) -> str | None:
    """All of them in one text, the best first."""
    return ". Or: ".join(remedy.words.rstrip(".") for remedy in remedies) or None
