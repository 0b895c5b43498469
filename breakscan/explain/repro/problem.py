"""The problems of a run that can be reproduced, and why no program can be made of one."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum

from breakscan.explain.explanation import Explanation
from breakscan.explain.frames import FrameStatus, Quoted, RaisedInTrace, Reason
from breakscan.model.findings import Origin, Site
from breakscan.model.problem import Caller, users_line
from breakscan.source.source_files import SourceFiles


class Obstacle(Enum):
    """``about`` of :class:`NotReproducible` is a name."""

    NO_FUNCTION = "no function"
    """The recording does not say which function of the program it was in."""
    NO_VALUES = "no values"
    """The values of the function were not recorded."""
    NO_SOURCE = "no source"
    """The source of the function cannot be read."""
    SAME_NAME = "same name"
    """Two files of the program mean different things by a name."""


class NotReproducible(Exception):
    """No program can be made of what was recorded."""

    def __init__(self, obstacle: Obstacle, about: str = "") -> None:
        self.obstacle, self.about = obstacle, about
        super().__init__(f"{obstacle.value}: {about}")


_NUMBERS = re.compile(r"\b(?:0x[0-9a-f]+|\d+)\b")


_PLACE = re.compile(r"(?P<path>.+?):(?P<line>\d+)(?::\d+)?")


class ProblemKind(Enum):
    """In the order in which they are taken where several stand at one line."""

    FAILURE = "failure"
    BREAK = "break"
    RECOMPILE = "recompile"
    FRAME = "frame"
    """A function that runs eager without a break."""


@dataclass(frozen=True, slots=True)
class FunctionAt:
    """A function that the compiler traced, by the path and the name that reports show."""

    path: str
    function: str


@dataclass(frozen=True, slots=True)
class RecordedProblem:
    """``outcome`` is what became of the code there, ``code`` its line without the blanks around it; ``functions`` led
    there, innermost first.  Of a recompile, ``subject`` is what changed, from ``old`` to ``new``."""

    kind: ProblemKind
    site: Site
    code: str
    origin: Origin
    outcome: str
    functions: tuple[FunctionAt, ...]
    rule: str | None
    gb_id: str | None
    gb_type: str | None
    reason: str = ""
    hints: tuple[str, ...] = ()
    users_line: Caller | None = None
    subject: str = ""
    old: str | None = None
    new: str | None = None

    def is_same(self, other: RecordedProblem) -> bool:
        """Whether two programs have the same problem: at a line with the same text, with the same outcome, for the same
        reason of torch's."""
        return self._essence == other._essence

    @property
    def _essence(self) -> tuple[object, ...]:
        cause = self.rule if self.kind is ProblemKind.RECOMPILE else self.gb_id or self.gb_type
        # What torch says of a failure names sizes, and addresses.
        said = _NUMBERS.sub("#", self.reason) if cause is None else ""
        return self.kind, self.code, self.outcome, cause, said, self.subject


def problems(explanation: Explanation, files: SourceFiles) -> list[RecordedProblem]:
    """All of a run."""
    found = [*_breaks(explanation), *_frames(explanation), *_recompiles(explanation, files)]
    return sorted(found, key=lambda problem: list(ProblemKind).index(problem.kind))


def problems_at(found: Sequence[RecordedProblem], where: str) -> list[RecordedProblem]:
    """Those that a user means by ``path:line``, or by the id of a rule or of PyTorch's; of several at one line, the
    first.  The line can be that of the user's that leads into a library."""
    if (place := _PLACE.fullmatch(where)) is None:
        return [one for one in found if where.upper() in (one.rule, one.gb_id)]
    path, line = place["path"], int(place["line"])
    there = [one for one in found if one.site.line == line and _is_path(one.site.path, path)]
    leading = (one for one in found if (c := one.users_line) and c.line == line and _is_path(c.path, path))
    return [next(group) for group in map(iter, _by_path(there or list(leading)))]


def _by_path(found: Sequence[RecordedProblem]) -> list[list[RecordedProblem]]:
    return [[one for one in found if one.site.path == path] for path in dict.fromkeys(one.site.path for one in found)]


def _is_path(shown: str, given: str) -> bool:
    """Whether a path is meant by its end."""
    return f"/{shown}".endswith(f"/{given.removeprefix('./')}")


def _breaks(explanation: Explanation) -> Iterator[RecordedProblem]:
    for one in explanation.breaks:
        yield RecordedProblem(
            ProblemKind.BREAK,
            one.site,
            (one.code or "").strip(),
            one.origin,
            one.verdict.value,
            _functions(one.stack),
            one.rule.id if one.rule else None,
            one.gb_id,
            one.gb_type,
            one.reason,
            one.hints,
            users_line(one.stack),
        )


def _frames(explanation: Explanation) -> Iterator[RecordedProblem]:
    for one in explanation.frames:
        if one.break_site is not None or one.over_limit or one.status is FrameStatus.PASSED_OVER:
            continue
        failed = one.status is FrameStatus.RAISED
        own = FunctionAt(one.site.path, one.function)
        yield RecordedProblem(
            ProblemKind.FAILURE if failed else ProblemKind.FRAME,
            one.failed_at or one.site,
            ((one.failed_code if one.failed_at else one.code) or "").strip(),
            one.origin,
            one.status.value,
            tuple(dict.fromkeys((*_functions(one.stack), own))),
            one.rule.id if one.rule else None,
            one.gb_id,
            one.gb_type,
            _said(one.reason),
            users_line=users_line(one.stack),
        )


def _said(reason: Reason) -> str:
    match reason:
        case Quoted():
            return reason.text
        case RaisedInTrace():
            return reason.error
    return repr(reason)


def _recompiles(explanation: Explanation, files: SourceFiles) -> Iterator[RecordedProblem]:
    for one in explanation.recompiles:
        lines = files.lines(one.site.path)
        yield RecordedProblem(
            ProblemKind.RECOMPILE,
            one.site,
            lines[one.site.line - 1].strip() if one.site.line <= len(lines) else "",
            one.origin,
            "recompiled",
            (FunctionAt(one.site.path, one.function),) if one.function else (),
            one.rule.id if one.rule else None,
            None,
            None,
            users_line=one.users_line,
            subject=one.subject,
            old=one.old if isinstance(one.old, str) else None,
            new=one.new,
        )


def _functions(stack: Sequence[Caller]) -> tuple[FunctionAt, ...]:
    found = (FunctionAt(caller.path, caller.function) for caller in reversed(stack) if caller.function)
    return tuple(dict.fromkeys(found))
