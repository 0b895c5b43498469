"""A message at a line of the user's code, which ``check`` and ``explain`` hand to the formats of services and to
editors.  Each command has one producer, and each format one renderer (``ci_formats.py``).  All strings are printable:
producers pass what they are given through :func:`breakscan.report.printable.printable`."""

import hashlib
import os
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from breakscan.model.findings import Finding, Severity, Site, SourceError
from breakscan.model.remedy import remedies_in_words
from breakscan.model.words import capitalized, sentences
from breakscan.report.findings import how_compiled, one_line, region_words, verdict_sentence
from breakscan.report.printable import printable
from breakscan.report.sources import NotebookCells, source_lines, start_of_line
from breakscan.rulebook.document import Rule
from breakscan.rulebook.remedies import finding_remedies


@dataclass(frozen=True, slots=True)
class Location:
    """Another place that a diagnostic refers to, and what it is."""

    site: Site
    message: str


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """A message at a site.  ``id`` and ``name`` are those of the rule, else of PyTorch's graph break (``GB0170``), else
    of the kind of diagnostic, which ``kind_summary`` describes.  ``message`` says what is the case, ``details`` are
    further sentences about it, and ``help`` is what to write instead.  An empty site has no known columns; without a
    site the diagnostic is about the whole program.  ``flow`` is the call chain to the site, outermost call first.
    ``code`` is the text of the line; without it, the line is read from the file."""

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
    """Input of a renderer.  ``head`` and ``end`` are lines for a log, before and after the diagnostics.  ``texts``
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
    _read: dict[str, list[str]] = field(default_factory=dict)

    def line(self, path: str, number: int) -> str:
        """The text of a line, counted from 1; empty where there is none."""
        if path not in self._read:
            text = self.texts.get(path)
            self._read[path] = self.lines(path) if text is None else text.split("\n")
        return next(iter(self._read[path][number - 1 : number]), "")


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


def finding_diagnostic(finding: Finding, rule: Rule | None) -> Diagnostic:
    rule = printable(rule)
    return Diagnostic(
        id=rule.id if rule else finding.rule,
        name=rule.name if rule else finding.name,
        severity=finding.severity,
        site=finding.site,
        message=capitalized(one_line(finding)),
        details=tuple(capitalized(words) for words in (verdict_sentence(finding), region_words(finding)) if words),
        help=remedies_in_words(finding_remedies(finding, rule)),
        rule=rule,
        function=finding.function,
        related=_related(finding),
    )


def error_site(error: SourceError) -> Site:
    """The character at which the problem is."""
    return Site(error.path, error.line, error.column, error.line, error.column + 1)


def _related(finding: Finding) -> tuple[Location, ...]:
    related = []
    if region := finding.region:
        related.append(Location(start_of_line(region), f"the compiler starts here: {how_compiled(region)}"))
    if finding.behind:
        related.append(Location(finding.behind, "this comes first, and hides it"))
    return tuple(related)


_VARIABLES = ("GITHUB_WORKSPACE", "CI_PROJECT_DIR")  # name the folder of the checkout


def checkout_root() -> str:
    """The absolute folder of the checkout in GitHub Actions and GitLab, else of the git repository, else here."""
    for variable in _VARIABLES:
        if folder := os.environ.get(variable):
            return os.path.abspath(folder)
    here = Path.cwd()
    return str(next((folder for folder in (here, *here.parents) if (folder / ".git").exists()), here))


class Fingerprints:
    """The fingerprints of one report, 32 hexadecimal digits each; no two are the same.  That of a diagnostic depends on
    the text of the line and on the function, not on the number of the line."""

    def __init__(self, report: DiagnosticReport) -> None:
        self._seen: Counter[tuple[str, ...]] = Counter()
        self._report = report

    def of(self, diagnostic: Diagnostic, path: str) -> str:
        """``path`` is how the format names the file."""
        site = diagnostic.site
        code = diagnostic.code or (self._report.line(site.path, site.line) if site else "")
        return self._digest(diagnostic.id, path, diagnostic.function or "", code.strip())

    def of_remark(self, remark: Remark, path: str) -> str:
        return self._digest(remark.title, path, remark.message)

    def _digest(self, *key: str) -> str:
        self._seen[key] += 1
        return hashlib.sha256("\0".join((*key, str(self._seen[key]))).encode()).hexdigest()[:32]
