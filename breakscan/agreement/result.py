"""What the comparison of ``check`` with a run results in."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

from breakscan.findings import Finding, Site, SourceError
from breakscan.runtime.explain.explanation import BreakSite, UncompiledFrame

Missed = BreakSite | UncompiledFrame
BreakKey = tuple[Site, str]
"""What identifies a recorded break: its site and type."""


class AgreementOutcome(str, Enum):
    """What the run says of a finding."""

    CONFIRMED = "confirmed"
    """The run broke, or compiled again, there."""
    HIDDEN = "hidden"
    """A break before it made the function run eager, so the compiler did not reach it."""
    NOT_TRIGGERED = "not-triggered"
    """Nothing of its line was compiled, or its condition did not hold, or nothing changed between calls."""
    CONTRADICTED = "contradicted"
    """The compiler traced the line, and compiled it without a break."""


@dataclass(frozen=True, slots=True)
class Judged:
    """A finding, what the run says of it, and where: the recorded site that confirms or hides it.  ``is_traced`` says
    that an operation of a graph comes from its lines."""

    finding: Finding
    outcome: AgreementOutcome
    by: Site | None
    is_traced: bool


@dataclass(frozen=True, slots=True)
class Agreement:
    """A run compared with the check of what it compiled.

    ``missed`` are recorded breaks in checked files, and functions that Dynamo did not trace, without a finding.
    ``silenced`` are those whose rule the configuration or a comment turns off.  ``files`` were checked, except for
    ``errors``.  ``torch`` is the version that they were checked for.
    """

    torch: str
    files: tuple[str, ...]
    judged: tuple[Judged, ...]
    missed: tuple[Missed, ...]
    silenced: tuple[Missed, ...]
    hidden: Mapping[BreakKey, tuple[Finding, ...]]
    errors: tuple[SourceError, ...]

    def count(self, outcome: AgreementOutcome) -> int:
        """How many findings have it."""
        return sum(one.outcome is outcome for one in self.judged)
