"""The source that reports show: lines of files, and cells of notebooks.  Findings count the lines of all code cells of
a notebook together.  In reports, a cell is a path of its own (``train.ipynb:cell 3:4:9``: cell, line and column)."""

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from breakscan.model.findings import CheckResult, Finding, Region, Site, SourceError
from breakscan.model.words import Line
from breakscan.report.printable import visible
from breakscan.source.module import SourceProblem
from breakscan.source.notebook_file import NotebookFile
from breakscan.source.python_text import CellText, cell_at, cells_of_text, is_notebook, text_of_cells
from breakscan.source.regular_files import read_regular_file
from breakscan.source.source_files import SourceFiles


def source_lines(path: str) -> list[str]:
    """The lines of a file, or of remembered code, by its path in a report; none where they cannot be read."""
    return SourceFiles.trusted().lines(path)


@dataclass(frozen=True, slots=True)
class Cell:
    path: str
    number: int
    source: str


@dataclass(frozen=True, slots=True)
class NotebookCells:
    """The cells of some notebooks, by the paths that they have in reports."""

    by_name: Mapping[str, Cell] = field(default_factory=dict)
    _texts: Mapping[str, list[CellText]] = field(default_factory=dict)

    @classmethod
    def of(cls, paths: Iterable[str], contents: Mapping[str, bytes] | None = None) -> "NotebookCells":
        """Those of the notebooks among some paths, read from disk where their contents are not given."""
        by_name: dict[str, Cell] = {}
        texts: dict[str, list[CellText]] = {}
        for path in sorted({path for path in paths if is_notebook(path)}):
            try:
                data = (contents or {}).get(path)
                file = NotebookFile.read(read_regular_file(path)[0] if data is None else data, path)
                found = cells_of_text(text_of_cells(file.cells, path))
            except (OSError, SourceProblem):
                continue  # what is said of it is about the file
            if found:
                texts[path] = texts[visible(path)] = found
            for cell in file.cells:
                made = Cell(path, cell.number, cell.source)
                by_name[_name(path, cell.number)] = by_name[visible(_name(path, cell.number))] = made
        return cls(by_name, texts)

    @property
    def texts(self) -> dict[str, str]:
        """The code of each cell, by its path in reports."""
        return {name: cell.source for name, cell in self.by_name.items()}

    def file_of(self, path: str) -> str:
        """The file of a path in reports."""
        cell = self.by_name.get(path)
        return path if cell is None else cell.path

    def site(self, site: Site) -> Site:
        """A site of a notebook's text as reports show it; any other one as it is."""
        cells = self._texts.get(site.path)
        if cells is None:
            return site
        cell, line = cell_at(cells, site.line)
        return replace(site, path=_name(site.path, cell.number), line=line, end_line=site.end_line - site.line + line)

    def finding(self, finding: Finding) -> Finding:
        """A finding whose places are as reports show them."""
        if not self._texts:
            return finding
        region = finding.region and self._region(finding.region)
        behind = finding.behind and self.site(finding.behind)
        return replace(finding, site=self.site(finding.site), region=region, behind=behind)

    def error(self, error: SourceError) -> SourceError:
        """The same for what could not be checked.  The first line of the text is no cell's: it is about the file."""
        if error.line == 1:
            return error
        at = self.site(Site(error.path, error.line, error.column, error.line, error.column))
        return replace(error, path=at.path, line=at.line)

    def result(self, result: CheckResult) -> CheckResult:
        """The same for a result of ``check``."""
        return replace(
            result,
            findings=tuple(map(self.finding, result.findings)),
            errors=tuple(map(self.error, result.errors)),
            warnings=tuple(map(self.error, result.warnings)),
        )

    def in_file(self, site: Site) -> Site:
        """A site as reports show it; one in a cell as the first line of its notebook: lines of the JSON say nothing."""
        cell = self.by_name.get(site.path)
        return site if cell is None else Site(cell.path, 1, 1, 1, 1)

    def object(self, place: Site | SourceError) -> dict[str, Any]:
        """A place as reports show it, as a dictionary of plain values: with the number of the cell apart."""
        cell = self.by_name.get(place.path)
        return asdict(place) | ({} if cell is None else {"path": cell.path, "cell": cell.number})

    def _region(self, region: Region) -> Region:
        at = self.site(start_of_line(region))
        return replace(region, path=at.path, line=at.line)


def start_of_line(at: Line) -> Site:
    return Site(at.path, at.line, 1, at.line, 1)


def cells_in(result: CheckResult, contents: Mapping[str, bytes] | None = None) -> NotebookCells:
    """The cells of the notebooks that a result of ``check`` names."""
    places = [place for finding in result.findings for place in (finding.site, finding.region) if place is not None]
    paths = {place.path for place in places} | {error.path for error in (*result.errors, *result.warnings)}
    return NotebookCells.of(paths, contents)


def _name(path: str, number: int) -> str:
    return f"{path}:cell {number}"
