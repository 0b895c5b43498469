"""The code cells of a notebook as one Python text, in which each cell begins with a line of its own."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

from breakscan.model.findings import SourceError
from breakscan.source.magics import MAGIC, hidden, shown
from breakscan.source.module import SourceModule, SourceProblem, parse_module
from breakscan.source.notebook_file import CodeCell, NotebookFile

CELL = "pass#\ufdd1"
"""The line in front of a cell: as a statement, it ends the one before it.  See :data:`.MAGIC` for the character."""


@dataclass(frozen=True, slots=True)
class CellText:
    """The part of the text that a cell is.  ``line`` is the line in front of it, from 1."""

    line: int
    number: int
    text: str


def notebook_text(data: bytes, display: str) -> str:
    """The Python text of a notebook.  Raises SourceProblem if it cannot be read."""
    return text_of_cells(NotebookFile.read(data, display).cells, display)


def text_of_cells(cells: Iterable[CodeCell], display: str) -> str:
    """The Python text of cells, without those that hold another language."""
    made = []
    for cell in cells:
        if MAGIC[1:] in cell.source or CELL[-1:] in cell.source:
            reason = f"cell {cell.number} holds U+FDD0 or U+FDD1, which Unicode does not allow in files"
            raise SourceProblem(SourceError(display, 1, 1, reason))
        text = hidden(cell.source)
        if text is not None:
            made.append(f"{CELL}{cell.number}\n{text}")
    return "\n".join(made)


def cells_of_text(text: str) -> list[CellText]:
    """The cells of a text that may have been edited, as long as :func:`marks` are the same."""
    lines = text.split("\n")
    starts = [at for at, line in enumerate(lines) if line.startswith(CELL)]
    ends = [*starts, len(lines)][1:]
    return [
        CellText(start + 1, int(lines[start][len(CELL) :]), "\n".join(lines[start + 1 : end]))
        for start, end in zip(starts, ends, strict=True)
    ]


def cell_at(cells: list[CellText], line: int) -> tuple[CellText, int]:
    """The cell that a line of the text is in, and which line of the cell it is."""
    cell = cells[max(bisect_right(cells, line, key=lambda one: one.line) - 1, 0)]
    return cell, max(line - cell.line, 1)


def marks(text: str) -> list[str]:
    """The lines of a text that stand for something else, which no edit may change."""
    if CELL not in text and MAGIC not in text:
        return []
    return [line for line in text.split("\n") if MAGIC in line or line.startswith(CELL)]


def edited_notebook(data: bytes, text: str, display: str) -> bytes:
    """The bytes of a notebook whose text is ``text`` after an edit."""
    sources = {cell.number: shown(cell.text) for cell in cells_of_text(with_start_inside(text))}
    return NotebookFile.read(data, display).with_sources(sources)


def parse_notebook(text: str, path: Path, display: str) -> SourceModule:
    """The module of the text of a notebook.  Raises SourceProblem at the cell that cannot be parsed."""
    try:
        return parse_module(text, path, display)
    except SourceProblem:
        for cell in cells_of_text(text):
            _require_python(cell, path, display)
        raise


def _require_python(cell: CellText, path: Path, display: str) -> None:
    try:
        parse_module(cell.text, path, display)
    except SourceProblem as problem:
        raise SourceProblem(replace(problem.error, line=cell.line + problem.error.line)) from problem


def with_start_inside(text: str) -> str:
    """Moves what an edit has put at the start of the text, such as an import, into the first cell.  A ``%%`` line stays
    the first one there."""
    lines = text.split("\n")
    first = next(at for at, line in enumerate(lines) if line.startswith(CELL))
    new = lines[:first]
    after = first + 1
    while new and after < len(lines) and lines[after].startswith(f"pass{MAGIC}%%"):
        after += 1
    return "\n".join([*lines[first:after], *new, *lines[after:]])
