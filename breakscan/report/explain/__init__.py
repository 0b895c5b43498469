"""The input of the reports of ``explain``."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from breakscan.explanation.explanation import Explanation
from breakscan.source.source_files import SourceFiles

if TYPE_CHECKING:
    from breakscan.explanation.agreement.result import Agreement


@dataclass(frozen=True, slots=True)
class ExplainReport:
    """An explanation, and what the report shows beyond it: what ``check`` reports for the code that was compiled (all
    of it with ``with_agreement``, else only what breaks hide), and the tables of
    :data:`breakscan.report.explain.tables.LISTINGS` with these names, or all
    findings with ``findings``.
    ``again`` is the command that reports the same run again, where it is not the one that reports it now.
    ``fixable`` is the number of breaks that ``fix`` has an edit for.
    ``files`` has the sources that it may show: none, if none are given."""

    explanation: Explanation
    agreement: Agreement | None = None
    with_agreement: bool = False
    tables: tuple[str, ...] = ()
    again: str = ""
    fixable: int = 0
    files: SourceFiles = field(default_factory=SourceFiles)
