"""The result of comparing ``check`` with a run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

from breakscan.explanation.breaks import Key
from breakscan.model.findings import Finding, Mode, Site, SourceError
from breakscan.model.problem import Problem


class AgreementOutcome(str, Enum):
    """The verdict of the run on a finding."""

    CONFIRMED = "confirmed"
    """The run broke or recompiled there."""
    HIDDEN = "hidden"
    """An earlier break made the function run eager, so the compiler did not reach it."""
    NOT_TRIGGERED = "not-triggered"
    """Nothing of its line was compiled, its condition did not hold, or nothing changed between calls."""
    CONTRADICTED = "contradicted"
    """The compiler traced the line and compiled it without a break."""


@dataclass(frozen=True, slots=True)
class Judged:
    """A finding and what the run says about it.

    ``by`` is the recorded site that confirms or hides it. ``is_traced`` says that an operation of a graph comes from
    its lines.
    """

    finding: Finding
    outcome: AgreementOutcome
    by: Site | None
    is_traced: bool


@dataclass(frozen=True, slots=True)
class Agreement:
    """A run compared with the check of the code that it compiled.

    ``missed`` are recorded problems in checked files without a finding: breaks, and functions that Dynamo did not
    trace.  ``silenced`` are those whose rule the configuration or a comment turns off.  ``files`` were
    checked, except for ``errors``.  ``torch`` is the version that they were checked for, ``mode`` how the code was
    compiled.  ``hidden`` are findings by the break that hides them.
    """

    torch: str
    mode: Mode
    files: tuple[str, ...]
    judged: tuple[Judged, ...]
    missed: tuple[Problem, ...]
    silenced: tuple[Problem, ...]
    errors: tuple[SourceError, ...]
    hidden: Mapping[Key, tuple[Finding, ...]] = field(default_factory=dict)
