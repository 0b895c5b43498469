"""The Python text of a file, which is a Python file or a notebook."""

from __future__ import annotations

from pathlib import Path

from breakscan.source.module import SourceModule, decode_source, parse_module

NOTEBOOK = ".ipynb"


def is_notebook(path: Path | str) -> bool:
    """Whether a path names a notebook."""
    return str(path).endswith(NOTEBOOK)


def python_text(data: bytes, path: Path | str, display: str) -> str:
    """The Python text of a file, given by its content.  Raises SourceProblem if it has none."""
    if is_notebook(path):
        from breakscan.source.notebook_text import notebook_text

        return notebook_text(data, display)
    return decode_source(data, display)


def parse_text(text: str, path: Path, display: str) -> SourceModule:
    """The module of the Python text of a file.  Raises SourceProblem if it cannot be parsed."""
    if is_notebook(path):
        from breakscan.source.notebook_text import parse_notebook

        return parse_notebook(text, path, display)
    return parse_module(text, path, display)
