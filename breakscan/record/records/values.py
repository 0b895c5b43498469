"""The values that functions met."""

from __future__ import annotations

from dataclasses import dataclass

from breakscan.model.observations import ValueSeen
from breakscan.record.records.source import Code


@dataclass(frozen=True, slots=True)
class FileSeen:
    """A file whose functions Dynamo traced: its absolute path, and the digest of its content when the first was."""

    path: str
    digest: str


@dataclass(frozen=True, slots=True)
class LibrarySeen:
    """A library of which Dynamo traced a function, by the name that it is imported by."""

    name: str
    version: str


@dataclass(frozen=True, slots=True)
class ValuesSeen:
    """The values that the names of a function had when it started, each time that Dynamo traced it until now.

    ``number`` numbers the functions of a process from 0.  ``qualname`` is None where Python does not say (3.10).
    ``inlined`` says that it was only traced as a part of others.  The last record of a function counts.
    """

    number: int
    code: Code
    qualname: str | None
    names: dict[str, ValueSeen]
    inlined: bool


@dataclass(frozen=True, slots=True)
class BreakValuesSeen:
    """The values of the names on a line of a function, when the graph broke there."""

    path: str
    line: int
    names: dict[str, ValueSeen]


@dataclass(frozen=True, slots=True)
class ValuesMet:
    """The functions, by their numbers, that Dynamo traced in a compile."""

    compile_id: str
    functions: tuple[int, ...]
