"""The file of a Jupyter notebook: its code cells, and how new code gets into them while all else stays as it is.

The library ``nbformat`` would write the whole file anew, in its own layout; here every byte stays that need not change.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import cached_property
from itertools import accumulate
from typing import Any

from breakscan.model.findings import SourceError
from breakscan.source.module import SourceProblem, with_plain_line_ends

Span = tuple[int, int]
"""The index of the first character of a value, and that after its last one."""

_DECODER = json.JSONDecoder()
_BLANK = re.compile(r"\s*")


def value_start(text: str, at: int = 0) -> int:
    """The index of the first character from ``at`` on that is not blank."""
    blank = _BLANK.match(text, at)
    assert blank is not None
    return blank.end()


def members(text: str, at: int) -> dict[str, Span]:
    """The values of the object at an index of a valid JSON text, by key.  Of equal keys, the last one counts, as it
    does for :mod:`json`."""
    found: dict[str, Span] = {}
    at = value_start(text, at + 1)
    while text[at] != "}":
        key, at = _DECODER.raw_decode(text, at)
        start = value_start(text, value_start(text, at) + 1)
        _, end = _DECODER.raw_decode(text, start)
        found[key] = start, end
        at = _next(text, end)
    return found


def items(text: str, at: int) -> Iterator[Span]:
    """The values of the array at an index of a valid JSON text."""
    at = value_start(text, at + 1)
    while text[at] != "]":
        _, end = _DECODER.raw_decode(text, at)
        yield at, end
        at = _next(text, end)


def _next(text: str, end: int) -> int:
    """The start of what follows a value: the next one, or the end of what holds both."""
    at = value_start(text, end)
    return value_start(text, at + 1) if text[at] == "," else at


_BOM = "\ufeff"
_FORMATS = (4,)
_PIECE = re.compile(r"\\u[0-9a-fA-F]{4}|\\.|[^\\]+")
_LINE_ENDS = {"\\n": "\n", "\\r": "\r"}
_CONFLICT = re.compile(r"^(<{7}|={7}|>{7})( |$)", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class CodeCell:
    """A code cell.  ``number`` counts all cells from 1, as notebooks show them from top to bottom; line ends in
    ``source`` are all ``\\n``.  ``at`` is the span of the value of ``source`` in the file, ``strings`` those of the
    strings in it."""

    number: int
    source: str
    at: Span
    strings: tuple[Span, ...]


@dataclass(frozen=True)
class NotebookFile:
    """``text`` is the JSON, ``cells`` the code cells, none where the kernel runs another language than Python."""

    text: str
    cells: tuple[CodeCell, ...]

    @classmethod
    def read(cls, data: bytes, display: str) -> NotebookFile:
        """Raises SourceProblem, with the remedy, if the file is no notebook of a format that Jupyter writes today."""
        text, document = _parsed(data, display)
        top = value_start(text, len(_BOM) if text.startswith(_BOM) else 0)
        if not isinstance(document, dict) or not isinstance(document.get("nbformat"), int):
            raise _problem(display, 'is no notebook: it has no "nbformat". Restore it, or exclude it')
        if document["nbformat"] not in _FORMATS:
            raise _problem(
                display,
                f"has format {document['nbformat']} of notebooks, and breakscan reads format 4: "
                "'jupyter nbconvert --to notebook --inplace' converts it",
            )
        if not isinstance(document.get("cells"), list):
            raise _problem(display, 'is no notebook: it has no list of "cells". Restore it, or exclude it')
        if not _is_python(document):
            return cls(text, ())
        spans = items(text, members(text, top)["cells"][0])
        cells = []
        for number, (cell, span) in enumerate(zip(document["cells"], spans, strict=True), 1):
            if isinstance(cell, dict) and cell.get("cell_type") == "code" and _language_of(cell) == "python":
                cells.append(_code_cell(text, number, cell, span, display))
        return cls(text, tuple(cells))

    def with_sources(self, sources: Mapping[int, str]) -> bytes:
        """The bytes of the file with new code in some cells, by number."""
        text = self.text
        for cell in reversed(self.cells):
            if cell.number in sources and sources[cell.number] != cell.source:
                start, end = cell.at
                text = text[:start] + self._literal(cell, sources[cell.number]) + text[end:]
        return text.encode()

    def file_lines(self, cell: CodeCell) -> list[int]:
        """The line of the file, from 1, on which each line of a cell begins."""
        bodies = [self.text[start + 1 : end - 1] for start, end in cell.strings]
        firsts = list(accumulate(map(len, bodies), initial=0))[:-1]
        at = accumulate(map(len, _raw_lines("".join(bodies))[:-1]), initial=0)
        strings = [cell.strings[bisect_right(firsts, offset) - 1] if firsts else cell.at for offset in at]
        return [bisect_right(self._line_starts, start) for start, _ in strings]

    @cached_property
    def _line_starts(self) -> list[int]:
        return [0, *(match.end() for match in re.finditer("\n", self.text))]

    @cached_property
    def _escapes(self) -> bool:
        """True if the file writes characters outside ASCII as escapes; Jupyter does not."""
        return self.text.isascii() and re.search(r"\\u(?!00[0-7])", self.text) is not None

    def _literal(self, cell: CodeCell, source: str) -> str:
        """The JSON of the new code of a cell.  Lines that stay keep the characters that they are written in."""
        raw = _raw_lines("".join(self.text[start + 1 : end - 1] for start, end in cell.strings))
        codes = [_without_end(line) for line in raw]
        ends = [line[len(code) :] for line, code in zip(raw[:-1], codes, strict=False)]
        usual = Counter(ends).most_common(1)[0][0] if ends else "\\n"
        # A line end of old Macs would be one with that of an empty line behind it.
        ends = [usual] * len(raw) if "\\r" in ends else [*ends, usual]
        before, after = cell.source.split("\n"), source.split("\n")
        made = [json.dumps(line, ensure_ascii=self._escapes)[1:-1] + usual for line in after]
        matcher = SequenceMatcher(None, before, after, autojunk=False)
        for start, new_start, size in matcher.get_matching_blocks():
            for offset in range(size):
                made[new_start + offset] = codes[start + offset] + ends[start + offset]
        made[-1] = _without_end(made[-1])
        if self.text[cell.at[0]] == '"':
            return f'"{"".join(made)}"'
        return self._list(cell, [f'"{line}"' for line in made if line])

    def _list(self, cell: CodeCell, strings: list[str]) -> str:
        """An array in the layout of that of a cell."""
        start, end = cell.at
        if not cell.strings:
            return f"[{', '.join(strings)}]"
        head, tail = self.text[start : cell.strings[0][0]], self.text[cell.strings[-1][1] : end]
        between = f",{head[1:] or ' '}"
        if len(cell.strings) > 1:
            between = self.text[cell.strings[0][1] : cell.strings[1][0]]
        return f"{head}{between.join(strings)}{tail}" if strings else "[]"


def _parsed(data: bytes, display: str) -> tuple[str, Any]:
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise _problem(display, f"cannot be decoded: a notebook is UTF-8 ({error.reason})") from error
    try:
        return text, json.loads(text.removeprefix(_BOM))
    except json.JSONDecodeError as error:
        if conflict := _CONFLICT.search(text):
            line = text.count("\n", 0, conflict.start()) + 1
            raise _problem(display, "holds a conflict of git: resolve the merge", line) from error
        reason = f"is no valid JSON: {error.msg}. Restore it, or exclude it"
        raise _problem(display, reason, error.lineno, error.colno) from error
    except (RecursionError, ValueError) as error:
        raise _problem(display, "cannot be read: its JSON is nested too deeply, or has too long a number") from error


def _code_cell(text: str, number: int, cell: Mapping[str, Any], span: Span, display: str) -> CodeCell:
    source = cell.get("source", "")
    strings = [source] if isinstance(source, str) else source
    at = members(text, span[0]).get("source")
    if at is None or not isinstance(strings, list) or not all(isinstance(string, str) for string in strings):
        raise _problem(display, f'has no code in cell {number}: its "source" is neither a text nor a list of texts')
    spans = (at,) if isinstance(source, str) else tuple(items(text, at[0]))
    return CodeCell(number, with_plain_line_ends("".join(strings)), at, spans)


def _is_python(document: Mapping[str, Any]) -> bool:
    """True if the kernel runs Python, which is the default."""
    metadata = document.get("metadata")
    for part, key in (("language_info", "name"), ("kernelspec", "language")):
        section = metadata.get(part) if isinstance(metadata, dict) else None
        language = section.get(key) if isinstance(section, dict) else None
        if isinstance(language, str):
            return "python" in language.lower()
    return True


def _language_of(cell: Mapping[str, Any]) -> str:
    """The language that VS Code keeps for a cell that is not in the kernel's own."""
    metadata = cell.get("metadata")
    editor = metadata.get("vscode") if isinstance(metadata, dict) else None
    language = editor.get("languageId") if isinstance(editor, dict) else None
    return language if isinstance(language, str) else "python"


def _raw_lines(body: str) -> list[str]:
    """The lines of the inside of a JSON string, as they are written, each but the last with its line end."""
    lines = [""]
    pieces = _PIECE.findall(body)
    for at, piece in enumerate(pieces):
        lines[-1] += piece
        end = _line_end(piece)
        if end == "\n" or (end == "\r" and (at + 1 == len(pieces) or _line_end(pieces[at + 1]) != "\n")):
            lines.append("")
    return lines


def _line_end(piece: str) -> str | None:
    if piece.startswith("\\u"):
        character = chr(int(piece[2:], 16))
        return character if character in "\r\n" else None
    return _LINE_ENDS.get(piece)


def _without_end(line: str) -> str:
    """A line as it is written, without its line end."""
    pieces = _PIECE.findall(line)
    while pieces and _line_end(pieces[-1]) is not None:
        pieces.pop()
    return "".join(pieces)


def _problem(display: str, message: str, line: int = 1, column: int = 1) -> SourceProblem:
    return SourceProblem(SourceError(display, line, column, message))
