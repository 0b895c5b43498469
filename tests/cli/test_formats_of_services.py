"""Formats for services other than GitHub, by the command line: notebooks, and names that no terminal gets to see."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

Run = Callable[..., Any]
CODE = "import torch\n@torch.compile\ndef f(x):\n    print(x)\n    return x\n"


@pytest.fixture
def notebook(folder: Path) -> int:
    """A notebook whose second cell breaks; the line of the file with the break."""
    (folder / ".git").mkdir()
    cells = [
        {"cell_type": "markdown", "metadata": {}, "source": ["# Title"]},
        {"cell_type": "code", "metadata": {}, "outputs": [], "execution_count": None, "source": CODE.splitlines(True)},
    ]
    text = json.dumps({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}, indent=1)
    (folder / "book.ipynb").write_text(text, encoding="utf-8")
    return next(number for number, line in enumerate(text.split("\n"), 1) if "print(x)" in line)


def test_gitlab(breakscan: Run, notebook: int) -> None:
    (one,) = breakscan("check", "book.ipynb", "--format", "gitlab").json
    assert one["location"] == {"path": "book.ipynb", "lines": {"begin": notebook, "end": notebook}}
    assert one["description"].startswith("BRK401 print: Cell 2, line 4: Print inside compiled code.")


def test_reviewdog(breakscan: Run, notebook: int) -> None:
    (one,) = breakscan("check", "book.ipynb", "--format", "rdjson").json["diagnostics"]
    assert one["location"] == {
        "path": "book.ipynb",
        "range": {"start": {"line": notebook}, "end": {"line": notebook}},
    }


@pytest.mark.parametrize("format_", ["junit", "checkstyle"])
def test_xml(breakscan: Run, notebook: int, format_: str) -> None:
    root = ElementTree.fromstring(breakscan("check", "book.ipynb", "--format", format_).out)
    assert str(notebook) in [one.get("line") for one in root.iter()]
    assert not any(one.get("column") for one in root.iter())
    assert any("Cell 2, line 4: " in (one.get("message") or "") for one in root.iter())


def test_a_name_that_is_shown_otherwise(breakscan: Run, folder: Path) -> None:
    (folder / ".git").mkdir()
    (folder / "a\x1b.py").write_text(CODE, encoding="utf-8")
    (one,) = breakscan("check", "a\x1b.py", "--format", "gitlab").json
    assert one["location"]["path"] == "a\x1b.py"
    root = ElementTree.fromstring(breakscan("check", "a\x1b.py", "--format", "checkstyle").out)
    assert [file.get("name") for file in root] == ["a\ufffd.py"]
