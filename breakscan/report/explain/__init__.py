"""The input of the reports of ``explain``."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from breakscan.explanation.explanation import Explanation
from breakscan.model.findings import Finding, Site
from breakscan.model.problem import Problem
from breakscan.source.source_files import SourceFiles


@dataclass(frozen=True, slots=True)
class ExplainReport:
    """An explanation, and what the report shows beyond it: the tables of
    :data:`breakscan.report.explain.tables.LISTINGS` with these names, or all findings with ``findings``. ``again`` is
    the command that reports the same run again, where it is not the one that reports it now. ``hidden`` are the
    findings of ``check`` that the compiler did not reach because of the break at a site. ``fixable`` is the number of
    breaks that ``fix`` has an edit for. ``compared`` is the number of problems that ``check`` should have findings for,
    ``missed`` are those without one. ``files`` has the sources that it may show: none, if none are given."""

    explanation: Explanation
    tables: tuple[str, ...] = ()
    again: str = ""
    hidden: Mapping[Site, Sequence[Finding]] = field(default_factory=dict)
    fixable: int = 0
    compared: int | None = None
    missed: Sequence[Problem] = ()
    files: SourceFiles = field(default_factory=SourceFiles)
