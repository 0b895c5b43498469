"""``breakscan check --add-ignore``."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Run = Callable[..., Any]


def test_everything_is_suppressed_with_the_reason(breakscan: Run, folder: Path) -> None:
    text = (folder / "model.py").read_text(encoding="utf-8")
    done = breakscan("check", "--add-ignore", "costs nothing")
    assert (done.status, done.out, done.err) == (0, "", "breakscan: 1 finding suppressed\n")
    assert (folder / "model.py").read_text(encoding="utf-8") == text.replace(
        "if x.any():", "if x.any():  # breakscan: ignore[BRK101] costs nothing"
    )
    again = breakscan("check")
    assert again.status == 0
    assert "1 suppressed" in again.out


def test_line_ends_and_encoding_stay(breakscan: Run, folder: Path) -> None:
    source = (
        "# coding: latin-1\r\nimport torch\r\n@torch.compile\r\ndef f(x):\r\n    print(x)  # \xe4\r\n    return x\r\n"
    )
    (folder / "old.py").write_bytes(source.encode("latin-1"))
    breakscan("check", "old.py", "--add-ignore", "later")
    assert (folder / "old.py").read_bytes().decode("latin-1") == source.replace(
        "\xe4", "\xe4  # breakscan: ignore[BRK401] later"
    )


def test_a_notebook(breakscan: Run, folder: Path) -> None:
    cells = [
        {"cell_type": "code", "metadata": {}, "outputs": [], "execution_count": None, "source": source}
        for source in (
            ["%time 1\n", "import torch\n"],
            ["@torch.compile\n", "def f(x):\n", "    print(x)\n", "    return x"],
        )
    ]
    book = folder / "book.ipynb"
    book.write_text(json.dumps({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}), encoding="utf-8")
    assert breakscan("check", "book.ipynb", "--add-ignore", "later").status == 0
    cells[1]["source"][2] = "    print(x)  # breakscan: ignore[BRK401] later\n"
    assert json.loads(book.read_text(encoding="utf-8"))["cells"] == cells
    assert breakscan("check", "book.ipynb").status == 0


def test_a_file_that_cannot_be_read_stops_no_other(breakscan: Run, folder: Path) -> None:
    (folder / "broken.py").write_text("def f(:\n", encoding="utf-8")
    done = breakscan("check", "--add-ignore", "later")
    assert done.status == 2
    assert "broken.py:1:7: cannot be parsed" in done.err
    assert "1 finding suppressed" in done.err


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--add-ignore", ""), "needs a reason"),
        (("--add-ignore", "two\nlines"), "in one line"),
        (("--add-ignore", "later", "-"), "--add-ignore is about files"),
    ],
)
def test_options_that_are_refused(breakscan: Run, options: tuple[str, ...], said: str) -> None:
    done = breakscan("check", *options)
    assert done.status == 2
    assert said in " ".join(done.err.split())
