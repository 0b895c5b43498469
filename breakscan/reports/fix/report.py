"""What the reports of ``fix`` are written from."""

from __future__ import annotations

from dataclasses import dataclass

from breakscan.findings import SourceError
from breakscan.repair.result import Repair
from breakscan.rulebook.library import Library


@dataclass(frozen=True, slots=True)
class FixReport:
    """A repair, and the rules.  ``written`` says that the files were to be changed; ``unwritten`` are those that could
    not be."""

    repair: Repair
    library: Library
    written: bool = False
    unwritten: tuple[SourceError, ...] = ()

    @property
    def unwritten_paths(self) -> set[str]:
        return {error.path for error in self.unwritten}
