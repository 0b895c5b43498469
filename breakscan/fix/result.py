"""The result of ``fix``."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from breakscan.fix.source_map import SourceMap
from breakscan.fix.support.difference import Difference
from breakscan.model.findings import CheckTarget, Finding, SourceError


@dataclass(frozen=True, slots=True)
class Applied:
    """A finding that a rewrite fixed.

    ``differences`` are its effects besides speed. ``remains`` is the condition, as code, under which it still breaks
    (None: never).
    """

    finding: Finding
    rewrite: str
    differences: tuple[Difference, ...] = ()
    remains: str | None = None

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
    """A finding that stays, with the reason of each rewrite that was tried."""

    finding: Finding
    reasons: tuple[Reason, ...]

    @property
    def reason(self) -> str:
        """The reason of the first rewrite that comes near to the code."""
        return next((one.text for one in self.reasons if one.near), "no edit is known for code of this form")


@dataclass(frozen=True, slots=True)
class FileRepair:
    """The repair of one file.

    Sites are those of ``before``, the text of ``data``; ``path`` is absolute.  ``safe`` is the text with the safe edits
    alone, ``after`` that with all that are wanted.  ``without`` are findings of rules that offer no rewrite.
    """

    path: Path
    display: str
    data: bytes
    before: str
    safe: str
    after: str
    applied: tuple[Applied, ...] = ()
    refused: tuple[Refused, ...] = ()
    without: tuple[Finding, ...] = ()
    errors: tuple[SourceError, ...] = ()
    lines: SourceMap = field(default_factory=SourceMap)
    """The origins of the lines of ``after``."""

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
