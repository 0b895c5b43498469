"""The result of ``fix``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from breakscan.fix.source_map import SourceMap
from breakscan.fix.support.difference import Difference, TakenOut
from breakscan.model.findings import CheckTarget, Finding, SourceError
from breakscan.model.observations import ValueSeen


@dataclass(frozen=True, slots=True)
class RestsOn:
    """Values of a recorded run: of the names that code uses, in how many ``calls``."""

    values: Mapping[str, ValueSeen]
    calls: int


@dataclass(frozen=True, slots=True)
class Applied:
    """A finding that a rewrite fixed.

    ``differences`` are its effects besides speed. ``remains`` is the condition, as code, under which it still breaks
    (None: never). ``takes_out`` is what leaves the graph if the rewrite does not remove the break and only softens it.
    ``rests_on`` are the values of a recorded run for which alone this is said (None: for all values).
    """

    finding: Finding
    rewrite: str
    differences: tuple[Difference, ...] = ()
    remains: str | None = None
    takes_out: TakenOut | None = None
    rests_on: RestsOn | None = None

    @property
    def difference(self) -> str | None:
        """The differences in words; None for a safe rewrite."""
        return "; ".join(one.text for one in self.differences) or None


@dataclass(frozen=True, slots=True)
class Reason:
    """The reason why a rewrite declines. ``near`` is False for code of another form, and for a last resort."""

    rewrite: str
    text: str
    near: bool = True


@dataclass(frozen=True, slots=True)
class Refused:
    """A finding that stays, with the reason of each rewrite that was tried.

    ``at_origin`` is the edit of another file that fixes it once this file, which a program writes, is generated again.
    """

    finding: Finding
    reasons: tuple[Reason, ...]
    at_origin: Applied | None = None

    @property
    def nearest(self) -> tuple[Reason, ...]:
        """The reasons of the rewrites that come near to the code; of all if none does."""
        return tuple(one for one in self.reasons if one.near) or self.reasons


@dataclass(frozen=True, slots=True)
class FileRepair:
    """The repair of one file.

    Sites are those of ``before``, the text of ``data``; ``path`` is absolute. ``held`` are findings that only an unsafe
    rewrite, or one that rests on a recorded run, would fix, if those were not asked for; ``softened``
    those that a rewrite would only soften, if that was not asked for; ``without`` are those of rules that offer no
    rewrite.
    """

    path: Path
    display: str
    data: bytes
    before: str
    after: str
    applied: tuple[Applied, ...] = ()
    held: tuple[Applied, ...] = ()
    softened: tuple[Applied, ...] = ()
    refused: tuple[Refused, ...] = ()
    without: tuple[Finding, ...] = ()
    errors: tuple[SourceError, ...] = ()
    lines: SourceMap = field(default_factory=SourceMap)
    """Where the lines of ``after`` come from."""

    @property
    def changed(self) -> bool:
        return self.before != self.after


@dataclass(frozen=True, slots=True)
class Repair:
    """The repairs of all files that hold findings, in the order of their paths.  ``files`` were checked."""

    files: tuple[FileRepair, ...]
    errors: tuple[SourceError, ...]
    checked: int
    targets: tuple[CheckTarget, ...]


@dataclass(slots=True)
class Left:
    """What became of them: see :class:`breakscan.fix.result.FileRepair`."""

    held: list[Applied] = field(default_factory=list)
    softened: list[Applied] = field(default_factory=list)
    refused: list[Refused] = field(default_factory=list)
    without: list[Finding] = field(default_factory=list)


def joined_left(several: Sequence[Left], applied: Iterable[Applied]) -> Left:
    """What became of each finding, where it differs with the facts: the best, and of equals the first."""
    taken = {(one.finding.rule, one.finding.site) for one in applied}

    def new(finding: Finding) -> bool:
        known = len(taken)
        taken.add((finding.rule, finding.site))
        return len(taken) > known

    held = [one for left in several for one in left.held]
    # An edit that is safe for some values comes before one that is unsafe for all.
    held = [one for one in sorted(held, key=_is_unsafe) if new(one.finding)]
    return Left(
        sorted(held, key=lambda one: _place(one.finding)),
        [one for left in several for one in left.softened if new(one.finding)],
        [one for left in several for one in left.refused if new(one.finding)],
        [one for left in several for one in left.without if new(one)],
    )


def _is_unsafe(one: Applied) -> bool:
    return bool(one.differences)


def _place(finding: Finding) -> tuple[int, int, str]:
    return finding.site.line, finding.site.column, finding.rule
