"""The problems of a run that can be reproduced, and why no program can be made of one."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, fields
from enum import Enum
from typing import Any

from breakscan.explanation.explanation import Explanation
from breakscan.explanation.problems import cause_problem
from breakscan.model.problem import Caller, FunctionHead, Problem, ProblemKind, users_line
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
_ORDER = (ProblemKind.FAILURE, ProblemKind.BREAK, ProblemKind.RECOMPILES, ProblemKind.FUNCTION)
"""The order in which problems at one line are taken."""


@dataclass(frozen=True, slots=True)
class FunctionAt:
    """A function that the compiler traced, by the path and the name that reports show."""

    path: str
    function: str


@dataclass(frozen=True, slots=True)
class RecordedProblem(Problem):
    """A problem and the functions that led there, innermost first.  Of a recompile, ``subject`` is what changed, from
    ``old`` to ``new``."""

    way: tuple[FunctionAt, ...] = ()
    subject: str = ""
    old: str | None = None
    new: str | None = None

    def is_same(self, other: RecordedProblem) -> bool:
        """Return whether two programs have the same problem: at a line with the same text, with the same outcome,
        for the same reason of torch's."""
        return self._essence == other._essence

    @property
    def _essence(self) -> tuple[object, ...]:
        cause = self.rule if self.kind is ProblemKind.RECOMPILES else self.gb_id or self.gb_type
        # What torch says of a failure names sizes, and addresses.
        said = _NUMBERS.sub("#", self.reason) if cause is None else ""
        return self.kind, self.code, self.verdict, cause, said, self.subject


def problems(explanation: Explanation, files: SourceFiles) -> list[RecordedProblem]:
    """The problems of a run that can be reproduced; each recompile is one."""
    found = []
    for problem in explanation.problems:
        if problem.kind is ProblemKind.BREAK or (problem.is_lost and problem.cause is None):
            head = problem.head or FunctionHead(problem.site, "".join(problem.functions[:1]))
            own = () if problem.kind is ProblemKind.BREAK else (FunctionAt(head.site.path, head.function),)
            callers = (FunctionAt(one.path, one.function) for one in reversed(problem.stack) if one.function)
            users = problem.users_line or users_line(problem.stack)
            way = tuple(dict.fromkeys((*callers, *own)))
            found.append(recorded(problem, (problem.code or "").strip(), users, way=way))
    for one in explanation.recompiles:
        lines = files.lines(one.site.path)
        code = lines[one.site.line - 1].strip() if one.site.line <= len(lines) else ""
        way = (FunctionAt(one.site.path, one.function),) if one.function else ()
        old = None if one.guard.is_bound else one.old
        again = recorded(cause_problem([one]), code, one.users_line, way=way, subject=one.subject, old=old, new=one.new)
        found.append(again)
    return sorted(found, key=lambda problem: _ORDER.index(problem.kind))


def recorded(problem: Problem, code: str, users: Caller | None, **values: Any) -> RecordedProblem:
    known = {field.name: getattr(problem, field.name) for field in fields(Problem)}
    return RecordedProblem(**{**known, "code": code, "users_line": users}, **values)


def problems_at(found: Sequence[RecordedProblem], where: str) -> list[RecordedProblem]:
    """The problems that ``path:line`` names, or by the id of a rule or of PyTorch's; of several at one line, the
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
    """Return whether a given path is the end of a shown one."""
    return f"/{shown}".endswith(f"/{given.removeprefix('./')}")
