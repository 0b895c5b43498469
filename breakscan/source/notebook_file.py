"""The file of a Jupyter notebook: its code cells, and how new code gets into them.

What an edit does not change keeps its layout as far as programs that write notebooks agree on one: indentation, escapes
of characters, and the digits of numbers."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from breakscan.source.module import SourceProblem, with_plain_line_ends

_BOM = "\ufeff"
_FORMATS = (4,)
_CONFLICT = re.compile(r"^(<{7}|={7}|>{7})( |$)", re.MULTILINE)
_NUMBER = "\ufdd2"
"""The mark of a string in place of a number with a fraction, of which Python would write other digits."""


@dataclass(frozen=True, slots=True)
class CodeCell:
    """A code cell.  ``number`` counts all cells from 1, as notebooks show them from top to bottom; line ends in
    ``source`` are all ``\\n``."""

    number: int
    source: str


@dataclass(frozen=True, slots=True)
class NotebookFile:
    """``text`` is the JSON, ``document`` its value, ``cells`` the code cells, none where the kernel runs no Python."""

    text: str
    document: Any
    cells: tuple[CodeCell, ...]

    @classmethod
    def read(cls, data: bytes, display: str) -> "NotebookFile":
        """Raises SourceProblem, with the remedy, if the file is no notebook of a format that Jupyter writes today."""
        text, document = _parsed(data, display)
        if not isinstance(document, dict) or not isinstance(document.get("nbformat"), int):
            raise SourceProblem.at(display, 'is no notebook: it has no "nbformat". Restore it, or exclude it')
        if document["nbformat"] not in _FORMATS:
            found = f"has format {document['nbformat']} of notebooks, and breakscan reads format 4"
            remedy = "'jupyter nbconvert --to notebook --inplace' converts it"
            raise SourceProblem.at(display, f"{found}: {remedy}")
        if not isinstance(document.get("cells"), list):
            raise SourceProblem.at(display, 'is no notebook: it has no list of "cells". Restore it, or exclude it')
        cells = enumerate(document["cells"] if _is_python(document) else (), 1)
        code = (
            CodeCell(number, _source(number, cell, display))
            for number, cell in cells
            # VS Code keeps the language of a cell that is not in the kernel's own.
            if _text_in(cell, "cell_type") == "code"
            and _text_in(cell, "metadata", "vscode", "languageId") in (None, "python")
        )
        return cls(text, document, tuple(code))

    def with_sources(self, sources: Mapping[int, str]) -> bytes:
        """The bytes of the file with new code in some cells, by number."""
        changed = {one.number for one in self.cells if sources.get(one.number, one.source) != one.source}
        if not changed:
            return self.text.encode()
        cells = list(self.document["cells"])
        for number in changed:
            # New code has the form of the code before: one text, or a list of lines.
            *lines, last = (code := sources[number]).split("\n")
            is_text = isinstance(cells[number - 1]["source"], str)
            form = code if is_text else [*(f"{line}\n" for line in lines), *([last] if last else [])]
            cells[number - 1] = {**cells[number - 1], "source": form}
        return self._written({**self.document, "cells": cells}).encode()

    def _written(self, document: Any) -> str:
        """The JSON of a document in the layout of the file."""
        text = self.text.removeprefix(_BOM)
        indent = re.match(r"\s*\{\s*\n([^\S\n]+)", text)
        is_ascii = text.isascii() and re.search(r"\\u(?!00[0-7])", text) is not None
        made = json.dumps(document, indent=indent[1] if indent else None, ensure_ascii=is_ascii)
        mark = re.escape(json.dumps(_NUMBER, ensure_ascii=is_ascii)[1:-1])
        made = re.sub(f'"{mark}([^"]*)"', r"\1", made)
        made = made.replace("\n", "\r\n") if "\r\n" in text else made
        bom = _BOM if self.text.startswith(_BOM) else ""
        return f"{bom}{made}{text[len(text.rstrip()) :]}"


def _parsed(data: bytes, display: str) -> tuple[str, Any]:
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise SourceProblem.at(display, f"cannot be decoded: a notebook is UTF-8 ({error.reason})") from error
    try:
        return text, json.loads(text.removeprefix(_BOM), parse_float=lambda digits: f"{_NUMBER}{digits}")
    except json.JSONDecodeError as error:
        if conflict := _CONFLICT.search(text):
            line = text.count("\n", 0, conflict.start()) + 1
            raise SourceProblem.at(display, "holds a conflict of git: resolve the merge", line) from error
        reason = f"is no valid JSON: {error.msg}. Restore it, or exclude it"
        raise SourceProblem.at(display, reason, error.lineno, error.colno) from error
    except (RecursionError, ValueError) as error:
        reason = "cannot be read: its JSON is nested too deeply, or has too long a number"
        raise SourceProblem.at(display, reason) from error


def _source(number: int, cell: Mapping[str, Any], display: str) -> str:
    source = cell.get("source")
    strings = [source] if isinstance(source, str) else source
    if not isinstance(strings, list) or not all(isinstance(string, str) for string in strings):
        reason = f'has no code in cell {number}: its "source" is neither a text nor a list of texts'
        raise SourceProblem.at(display, reason)
    return with_plain_line_ends("".join(strings))


def _is_python(document: object) -> bool:
    """True if the kernel runs Python, which is the default."""
    language = _text_in(document, "metadata", "language_info", "name")
    return "python" in (language or _text_in(document, "metadata", "kernelspec", "language") or "python").lower()


def _text_in(value: Any, *keys: str) -> str | None:
    """The text under keys inside one another."""
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    return value if isinstance(value, str) else None
