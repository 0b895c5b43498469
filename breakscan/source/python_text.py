"""The Python text of a file: a notebook's are its code cells, each of which begins with a line of its own.

The parser of Python must not see magic commands, and no line or column may move: each line of one becomes a statement
that does nothing, with the line itself after :data:`MAGIC`."""

import ast
import io
import re
import tokenize
import warnings
from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

from breakscan.source.module import SourceModule, SourceProblem, decode_source, parse_module
from breakscan.source.notebook_file import CodeCell, NotebookFile

MAGIC = "#\ufdd0"
"""The mark before a hidden line.  Unicode keeps this character for the internal use of programs."""

_CELL_MAGICS_OF_PYTHON = frozenset({"breakscan", "capture", "debug", "memit", "prun", "time", "timeit"})
"""Those that run the rest of their cell in the notebook itself."""

_WITHOUT_ESCAPE = frozenset(
    {
        "alias", "autoreload", "cat", "cd", "conda", "cp", "env", "load_ext", "ls", "mamba", "matplotlib", "mkdir",
        "mv", "pip", "pwd", "reload_ext", "rm", "rmdir", "run", "uv",
    }
)  # fmt: skip
"""Commands that IPython also takes without their ``%``, where they are all of a cell."""
_CELL_MAGIC = re.compile(r"%%\S")
_ESCAPES = ("%", "!", "?", ",", ";", "/")
"""No line of Python begins with one of these."""
_HELP = re.compile(r"[^#'\"]*\?")
_ASSIGNED = re.compile(r"(?P<target>[\w.,\s\[\]*'\"]+)=\s*(?:!|%[^\W\d])")
_TIMED = re.compile(r"%time(?:it)?\s+(?:-[a-zA-Z]+(?:\s*\d+)?\s+)*")


def hidden(source: str) -> str | None:
    """The text of a cell with its magic commands hidden; None where the cell holds another language."""
    lines = source.split("\n")
    bare = source.strip()
    if "\n" not in bare and bare.partition(" ")[0] in _WITHOUT_ESCAPE and not _is_python(bare):
        return "\n".join(f"pass{MAGIC}{line}" if line.strip() else line for line in lines)
    made: list[str] = []
    continued: str | None = None
    is_head = True
    for line in lines:
        is_head = is_head and (not line.strip() or _CELL_MAGIC.match(line) is not None)
        if is_head:
            if line.strip() and line[2:].split(None, 1)[0] not in _CELL_MAGICS_OF_PYTHON:
                return None
            made.append(f"pass{MAGIC}{line}" if line.strip() else line)
            continue
        if continued is not None:
            made.append(f"{continued}pass{MAGIC}{line}")
            continued = continued if line.endswith("\\") else None
            continue
        statement = _in_place_of(line)
        if statement is not None and not _is_open(made):
            indent = line[: len(line) - len(line.lstrip())]
            made.append(f"{indent}{statement}{MAGIC}{line}")
            continued = indent if line.endswith("\\") else None
        else:
            made.append(line)
    return "\n".join(made)


def shown(text: str) -> str:
    """The text of a cell before :func:`hidden`."""
    return "\n".join(line.partition(MAGIC)[2] if MAGIC in line else line for line in text.split("\n"))


def _in_place_of(line: str) -> str | None:
    """The statement that replaces a command, if the line is one and begins a statement; else None."""
    bare = line.strip()
    if timed := _TIMED.match(bare):
        rest = bare[timed.end() :]
        # The code that is timed stays in its columns.
        statement = f"{'None;':<{timed.end()}}{rest}"
        return statement if _is_python(statement) else "pass"
    if bare.startswith(_ESCAPES) or _HELP.fullmatch(bare):
        return "pass"
    if (assigned := _ASSIGNED.match(bare)) and not _is_python(bare):
        return f"{assigned['target']}= get_ipython()"
    return None


def _is_python(code: str) -> bool:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ast.parse(code)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True


def _is_open(lines: list[str]) -> bool:
    """True if a statement, or a string, goes on after these lines."""
    try:
        for _ in tokenize.generate_tokens(io.StringIO("\n".join([*lines, ""])).readline):
            pass
    except tokenize.TokenError as error:
        return "EOF in multi-line" in error.args[0] or "triple-quoted" in error.args[0]
    except SyntaxError:
        pass
    return False


CELL = "pass#\ufdd1"
"""The line in front of a cell: as a statement, it ends the one before it.  See :data:`.MAGIC` for the character."""


@dataclass(frozen=True, slots=True)
class CellText:
    """The part of the text that a cell is.  ``line`` is the line in front of it, from 1."""

    line: int
    number: int
    text: str


def text_of_cells(cells: Iterable[CodeCell], display: str) -> str:
    """The Python text of cells, without those that hold another language."""
    made = []
    for cell in cells:
        if MAGIC[1:] in cell.source or CELL[-1:] in cell.source:
            reason = f"cell {cell.number} holds U+FDD0 or U+FDD1, which Unicode does not allow in files"
            raise SourceProblem.at(display, reason)
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
    """The lines of a text that replace something else, which no edit may change."""
    if CELL not in text and MAGIC not in text:
        return []
    return [line for line in text.split("\n") if MAGIC in line or line.startswith(CELL)]


def edited_notebook(data: bytes, text: str, display: str) -> bytes:
    """The bytes of a notebook whose text is ``text`` after an edit.  What that has put at the start goes into the first
    cell, behind its ``%%`` lines."""
    lines = text.split("\n")
    first = next(at for at, line in enumerate(lines) if line.startswith(CELL))
    new, after = lines[:first], first + 1
    while new and after < len(lines) and lines[after].startswith(f"pass{MAGIC}%%"):
        after += 1
    text = "\n".join([*lines[first:after], *new, *lines[after:]])
    sources = {cell.number: shown(cell.text) for cell in cells_of_text(text)}
    return NotebookFile.read(data, display).with_sources(sources)


NOTEBOOK = ".ipynb"


def is_notebook(path: Path | str) -> bool:
    """True if a path names a notebook."""
    return str(path).endswith(NOTEBOOK)


def python_text(data: bytes, path: Path | str, display: str) -> str:
    """The Python text of a file, given by its content.  Raises SourceProblem if it has none."""
    if is_notebook(path):
        return text_of_cells(NotebookFile.read(data, display).cells, display)
    return decode_source(data, display)


def parse_text(text: str, path: Path, display: str) -> SourceModule:
    """The module of the Python text of a file.  Raises SourceProblem where it, or a cell, cannot be parsed."""
    try:
        return parse_module(text, path, display)
    except SourceProblem:
        for cell in cells_of_text(text) if is_notebook(path) else ():
            _require_python(cell, path, display)
        raise


def _require_python(cell: CellText, path: Path, display: str) -> None:
    try:
        parse_module(cell.text, path, display)
    except SourceProblem as problem:
        raise SourceProblem(replace(problem.error, line=cell.line + problem.error.line)) from problem
