"""A candidate: anything that changes how the program runs, and how it is named."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum

from breakscan.fix.result import Difference
from breakscan.fix.source_map import SourceMap
from breakscan.model.findings import Finding, Site
from breakscan.prove.protocol import CompileOption


class MeasuringStep(Enum):
    """The task of a process, as progress shows it."""

    RUN = "running the program"
    COMPILE = "compiling"
    TIME = "timing"
    REPEAT = "timing it in further processes"
    RECORD_TESTS = "recording the outcomes of tests"
    DIVERGE = "finding where compiled code differs from eager"


@dataclass(frozen=True, slots=True)
class MeasuringProgress:
    """A step for a candidate; without a label, for the program as it is.  It is ``number`` of ``of`` candidates, or
    processes of one that is repeated; 0 if that is not known."""

    step: MeasuringStep
    label: str | None = None
    number: int = 0
    of: int = 0


Say = Callable[[MeasuringProgress], None]


ALL = "all"
"""The label of all rewrites together."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """Anything that changes how the program runs: a way to compile it, settings, edits of its files, or none of these.

    ``label`` names it, as the name of a patch, settings as they were given, or ``net.py:12+20 where``.  ``options`` are
    keyword arguments of ``torch.compile``, None for the program's own; ``settings`` belong to the compiler's
    configurations (``dynamo.capture_scalar_outputs``).  ``texts`` holds the old and the new text of each file, and
    ``lines`` where the lines of the new text come from, both by absolute path.  The rest is known of rewrites alone."""

    label: str
    options: Mapping[str, CompileOption] | None = None
    settings: Mapping[str, object] = field(default_factory=dict)
    texts: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    lines: Mapping[str, SourceMap] = field(default_factory=dict)
    findings: tuple[Finding, ...] = ()
    rewrite: str | None = None
    differences: tuple[Difference, ...] = ()
    members: tuple[str, ...] = ()
    targets: tuple[Site, ...] = ()
    """Break sites that the change must remove."""

    @property
    def difference(self) -> str | None:
        """In which way the change is not safe, in words; None if it is safe."""
        return "; ".join(one.text for one in self.differences) or None


UNCHANGED = Candidate("")
"""The program as it is."""
