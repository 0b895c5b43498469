"""What a run exported, and what stood against that: the objects that reports of it are made from."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from breakscan.explain.callers import Caller
from breakscan.model.findings import Origin, Site
from breakscan.record.parsers.export_errors import ExportProblem
from breakscan.rulebook.document import Rule


class ExportWay(str, Enum):
    EXPORT = "export"
    DRAFT = "draft_export"
    AHEAD_OF_TIME = "aot_inductor"
    AOT_COMPILE = "aot_compile"
    """Of what ``torch.compile`` gave."""


class ExportStatus(str, Enum):
    DONE = "done"
    UNSOUND = "unsound"
    """``draft_export`` gave a program that is right for some inputs only."""
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Export:
    """The calls of one line that exported one thing in one way, with one result.  ``ops`` are the operations of the
    result, where torch gives any; ``site`` is the head of what was exported, where it is known; ``seconds`` is what all
    calls took."""

    way: ExportWay
    name: str
    site: Site | None
    caller: Caller | None
    strict: bool | None
    status: ExportStatus
    count: int
    ops: int | None
    seconds: float


@dataclass(frozen=True, slots=True)
class ExportTry:
    """An export that a problem stood against: in which way, of what, from which line."""

    way: ExportWay
    name: str
    strict: bool | None
    caller: Caller | None


@dataclass(frozen=True, slots=True)
class ExportFailure:
    """One problem at one site, in all exports that it stood against.

    ``about`` is what it is about: torch's expression, an operator, a size, a class.  ``reason`` is what torch or an
    exception says of it, in one line, and empty where ``problem`` says all; ``fixes`` are those that torch suggests.
    ``fatal`` says that it ended an export; ``text`` is torch's whole text then.
    """

    problem: ExportProblem
    about: str
    reason: str
    fixes: tuple[str, ...]
    rule: Rule | None
    gb_type: str | None
    gb_id: str | None
    hints: tuple[str, ...]
    site: Site
    function: str | None
    origin: Origin
    count: int
    fatal: bool
    exports: tuple[ExportTry, ...]
    stack: tuple[Caller, ...]
    code: str | None
    text: str
