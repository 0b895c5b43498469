"""The text of an open file: where its lines are in the documents of the editor."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from lsprotocol import types
from pygls.workspace import PositionCodec, TextDocument

from breakscan.model.findings import Site
from breakscan.source.module import with_plain_line_ends
from breakscan.source.notebook_file import CodeCell
from breakscan.source.python_text import cells_of_text, is_notebook, shown, text_of_cells, with_start_inside


@dataclass(frozen=True, slots=True)
class TextPart:
    """A document of the editor.  ``first`` is the line of the text, from 1, that its first line is."""

    uri: str
    version: int | None
    first: int
    lines: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class OpenText:
    """The Python text of an open file, in its parts, by their lines."""

    path: Path
    text: str
    parts: tuple[TextPart, ...]
    codec: PositionCodec = field(compare=False)

    def range_of(self, site: Site) -> tuple[TextPart, types.Range]:
        """Where a site of the text is, in the units of the client."""
        part = self.parts[max(bisect_right(self.parts, site.line, key=lambda one: one.first) - 1, 0)]
        last = len(part.lines) - 1
        lines = [min(max(line - part.first, 0), last) for line in (site.line, site.end_line)]
        start, end = types.Position(lines[0], site.column - 1), types.Position(lines[1], site.end_column - 1)
        return part, self.codec.range_to_client_units(list(part.lines), types.Range(start, end))

    def split(self, text: str) -> Iterator[str]:
        """The text of each part, once the text of all is ``text`` after an edit."""
        if is_notebook(self.path):
            yield from (shown(cell.text) for cell in cells_of_text(with_start_inside(text)))
        else:
            yield text


def text_of_file(uri: str, path: Path, version: int | None, text: str, codec: PositionCodec) -> OpenText:
    """A file that is one document; line ends in its text are plain."""
    return OpenText(path, text, (TextPart(uri, version, 1, tuple(text.split("\n"))),), codec)


def text_of_notebook(
    path: Path, notebook: types.NotebookDocument, documents: Mapping[str, TextDocument], codec: PositionCodec
) -> OpenText:
    """A notebook, whose code cells are documents.  Raises SourceProblem where it has no Python text."""
    cells: list[CodeCell] = []
    sources: dict[int, TextDocument] = {}
    for number, cell in enumerate(notebook.cells, 1):
        document = documents.get(cell.document)
        if cell.kind == types.NotebookCellKind.Code and document is not None and document.language_id == "python":
            sources[number] = document
            cells.append(CodeCell(number, with_plain_line_ends(document.source), (0, 0), ()))
    text = text_of_cells(cells, str(path))
    first = {cell.number: cell.line + 1 for cell in cells_of_text(text)}
    # Those in another language are not in the text.
    parts = (
        TextPart(document.uri, document.version, first[cell.number], tuple(cell.source.split("\n")))
        for cell in cells
        if cell.number in first and (document := sources[cell.number])
    )
    return OpenText(path, text, tuple(parts), codec)
