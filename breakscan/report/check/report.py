"""What the reports of ``check`` are written from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from breakscan.model.findings import CheckResult
from breakscan.report.shared.notebook_cells import NotebookCells
from breakscan.rulebook.library import Library


@dataclass(frozen=True, slots=True)
class CheckReport:
    """A result of ``check``, the seconds that it took, and the rules.  ``texts`` holds the sources of paths that are
    not on disk, such as standard input.  Of notebooks, the result shows places in ``cells``.  ``known`` counts the
    findings that a baseline allows, or that another commit has, which are not in the result.  ``quiet`` leaves out all
    but the findings and what was not checked."""

    result: CheckResult
    seconds: float
    library: Library
    texts: Mapping[str, str] = field(default_factory=dict)
    cells: NotebookCells = field(default_factory=NotebookCells)
    known: int = 0
    quiet: bool = False
