"""A message at a line of the user's code: what ``check``, ``explain``, ``fix`` and ``verify`` hand to the renderers.

Each command has one producer (``check/diagnostics.py``, …), and each format one renderer in this folder.  All strings
are printable: producers pass what they are given through :func:`breakscan.report.shared.printable.printable`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from breakscan.model.findings import Severity, Site
from breakscan.model.words import sentences
from breakscan.report.shared.notebook_cells import NotebookCells
from breakscan.report.shared.source_lines import source_lines
from breakscan.rulebook.document import Rule


@dataclass(frozen=True, slots=True)
class Location:
    """Another place that a diagnostic refers to, and what it is."""

    site: Site
    message: str


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """A message at a site.

    ``id`` and ``name`` are those of the rule, else of PyTorch's graph break (``GB0170``), else of the kind of
    diagnostic, which ``kind_summary`` describes.  ``message`` says what is the case, ``details`` are further
    sentences about it, and ``help`` is what to write instead.  An empty site has no known columns; without a site the
    diagnostic is about the whole program.  ``flow`` is the call chain to the site, outermost call first.  ``code`` is
    the text of the line; without it, the line is read from the file.
    """

    id: str
    name: str
    severity: Severity
    site: Site | None
    message: str
    details: tuple[str, ...] = ()
    help: str | None = None
    rule: Rule | None = None
    kind_summary: str = ""
    function: str | None = None
    count: int = 1
    code: str | None = None
    flow: tuple[Location, ...] = ()
    related: tuple[Location, ...] = ()

    @property
    def title(self) -> str:
        """The name, after the id where a rule or PyTorch documents that id."""
        return f"{self.id} {self.name}" if self.rule or self.id.startswith("GB") else self.name

    @property
    def text(self) -> str:
        """The message, its details and the help as sentences."""
        return sentences(self.message, *self.details, self.help and f"Instead: {self.help}")


@dataclass(frozen=True, slots=True)
class Remark:
    """Something about the run itself, such as a file that could not be read."""

    severity: Severity
    message: str
    title: str = ""
    site: Site | None = None


@dataclass(frozen=True, slots=True)
class DiagnosticReport:
    """What a renderer writes.  ``head`` and ``end`` are lines for a log, before and after the diagnostics.  ``texts``
    holds the sources of paths that are not on disk, and ``lines`` reads the other ones.  Paths of ``cells`` are not
    those of files.  ``originals`` are the paths of files whose names are shown otherwise."""

    command: str
    diagnostics: Sequence[Diagnostic]
    remarks: Sequence[Remark] = ()
    head: Sequence[str] = ()
    end: Sequence[str] = ()
    texts: Mapping[str, str] = field(default_factory=dict)
    lines: Callable[[str], list[str]] = source_lines
    cells: NotebookCells = field(default_factory=NotebookCells)
    originals: Mapping[str, str] = field(default_factory=dict)


def location_words(site: Site | None) -> str:
    """``model.py:41:9``; without the column where it is not known, and nothing without a site."""
    if site is None:
        return ""
    has_columns = (site.end_line, site.end_column) != (site.line, site.column)
    return f"{site.path}:{site.line}{f':{site.column}' if has_columns else ''}"


def cell_words(cells: NotebookCells, site: Site | None) -> str:
    """``Cell 3, line 4: `` before a message about a notebook, which services show as JSON; nothing for other sites."""
    cell = cells.by_name.get(site.path) if site else None
    return f"Cell {cell.number}, line {site.line}: " if cell and site else ""
