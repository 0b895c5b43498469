"""The input of the reports of ``fix``."""

from __future__ import annotations

from dataclasses import dataclass, field

from breakscan.fix.result import Repair
from breakscan.model.findings import SourceError
from breakscan.report.shared.notebook_cells import NotebookCells
from breakscan.rulebook.library import Library


@dataclass(frozen=True, slots=True)
class FixReport:
    """A repair, and the rules.  ``written`` says that ``--write`` was given; ``unwritten`` are the files that could not
    be written.  Of notebooks, places are shown in ``cells``."""

    repair: Repair
    library: Library
    written: bool = False
    unwritten: tuple[SourceError, ...] = ()
    cells: NotebookCells = field(default_factory=NotebookCells)

    @property
    def unwritten_paths(self) -> set[str]:
        return {error.path for error in self.unwritten}
