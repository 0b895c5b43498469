"""Notebooks as Python text and back: each line has its place, and nothing else changes."""

import ast
import codecs
import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from breakscan.source.module import SourceProblem, with_plain_line_ends
from breakscan.source.notebook_file import NotebookFile
from breakscan.source.python_text import (
    CELL,
    MAGIC,
    cell_at,
    cells_of_text,
    edited_notebook,
    hidden,
    marks,
    python_text,
    shown,
    text_of_cells,
)

LINES = st.sampled_from(
    [
        "", "    ", "x = 1", "y = 'é\\n'", "# why?", "s = '''", "'''", "z = (1,", "  % 2,", ")", "if x:", "    y = 2",
        "    !ls", "%time f(x)", "    %timeit -n 3 f(x)", "%matplotlib inline", "!pip install \\", "  torch", "a = !ls",
        "b, c = %magic d", "torch.compile?", "?x", "%%time", "%%bash", "%%capture out", "pip install torch", "\t\f",
        "print('\U0001f525', '\\u00e9')", "d['a=!b'] = 3", "/f x", "x = y \\", "    + 1;",
    ]
)  # fmt: skip
ENDS = st.sampled_from(["\n", "\n", "\n", "\r\n", "\r"])


def joined(lines: list[tuple[str, str]], is_ended: bool) -> str:
    text = "".join(line + end for line, end in lines)
    return text if is_ended or not lines else text[: -len(lines[-1][1])]


SOURCES = st.builds(joined, st.lists(st.tuples(LINES, ENDS), max_size=8), st.booleans())


@st.composite
def notebooks(draw: st.DrawFn) -> bytes:
    """A notebook as one of the many programs might write it that do."""
    cells: list[dict[str, Any]] = []
    for source in draw(st.lists(SOURCES, max_size=5)):
        value = source if draw(st.booleans()) else source.splitlines(keepends=True)
        kind = draw(st.sampled_from(["code", "code", "code", "markdown", "raw"]))
        cell = {"cell_type": kind, "id": "a1", "metadata": {"tags": ["x"]}, "source": value}
        if kind == "code":
            cell["outputs"] = [{"text": ["source", '"source": []']}]
        order = draw(st.permutations(list(cell)))
        cells.append({key: cell[key] for key in order})
    document: dict[str, Any] = {"cells": cells, "metadata": {"n": 1e400}, "nbformat": 4, "nbformat_minor": 5}
    order = draw(st.permutations(list(document)))
    text = json.dumps(
        {key: document[key] for key in order},
        indent=draw(st.sampled_from([None, 1, 4, "\t"])),
        ensure_ascii=draw(st.booleans()),
        separators=draw(st.sampled_from([None, (",", ":"), (" , ", " : ")])),
    )
    text = draw(st.sampled_from(["", " \n"])) + text + draw(st.sampled_from(["", "\n", "\r\n\n"]))
    return draw(st.sampled_from([b"", codecs.BOM_UTF8])) + text.encode()


@given(notebooks())
@settings(max_examples=100)
def test_a_notebook_that_stays_keeps_every_byte(data: bytes) -> None:
    text = python_text(data, "a.ipynb", "a.ipynb")
    if text:
        assert edited_notebook(data, text, "a.ipynb") == data


@given(notebooks())
@settings(max_examples=100)
def test_every_line_of_the_text_has_its_place(data: bytes) -> None:
    file = NotebookFile.read(data, "a.ipynb")
    sources = {
        number: with_plain_line_ends("".join(cell["source"])).split("\n")
        for number, cell in enumerate(json.loads(data.decode("utf-8-sig"))["cells"], 1)
        if cell["cell_type"] == "code"
    }
    assert {cell.number: cell.source.split("\n") for cell in file.cells} == sources
    text = text_of_cells(file.cells, "a.ipynb")
    cells = cells_of_text(text)
    found: dict[int, list[str]] = {}
    for at, line in enumerate(text.split("\n"), 1):
        if text and not line.startswith(CELL):
            cell, number = cell_at(cells, at)
            found.setdefault(cell.number, []).append(shown(line))
            assert len(found[cell.number]) == number
    # Cells in another language are not in the text.
    assert found == {number: source for number, source in sources.items() if number in found}
    assert all(hidden("\n".join(source)) is None for number, source in sources.items() if number not in found)


@given(notebooks(), st.data())
@settings(max_examples=150)
def test_an_edit_changes_the_source_of_its_cell_alone(data: bytes, draw: st.DataObject) -> None:
    text = python_text(data, "a.ipynb", "a.ipynb")
    lines = text.split("\n")
    if not text:
        return
    at = draw.draw(st.integers(1, len(lines)))
    taken, new = draw.draw(st.sampled_from([(0, ["new = 'é'", "more = 1"]), (1, ["new = 'é'"]), (1, [])]))
    after = "\n".join([*lines[:at], *new, *lines[at + taken :]])
    if marks(after) != marks(text):
        return
    number = cell_at(cells_of_text(text), at)[0].number
    made = edited_notebook(data, after, "a.ipynb")
    documents = [json.loads(one.decode("utf-8-sig"), parse_float=str) for one in (data, made)]
    old_source, source = (document["cells"][number - 1].pop("source") for document in documents)
    assert documents[0] == documents[1]
    assert [*documents[0]] == [*documents[1]]
    assert type(source) is type(old_source)
    edited = next(one for one in cells_of_text(after) if one.number == number)
    assert with_plain_line_ends("".join(source)) == shown(edited.text)


@pytest.mark.parametrize("indent", [1, 2, "\t"])
@pytest.mark.parametrize("ends", [("", "", "\n"), ("\ufeff", "\n", "\n"), ("", "\n", "\r\n")])
@pytest.mark.parametrize("is_ascii", [True, False])
def test_the_layout_of_programs_that_write_notebooks_stays(
    indent: int | str, ends: tuple[str, str, str], is_ascii: bool
) -> None:
    def written(*lines: str) -> bytes:
        cells = [{"cell_type": "code", "outputs": ["é", 5], "source": [*lines]}]
        text = json.dumps({"nbformat": 4, "cells": cells}, indent=indent, ensure_ascii=is_ascii).replace("5", "1e-7")
        return f"{ends[0]}{text}{ends[1]}".replace("\n", ends[2]).encode()

    before = written("a = 'ö'\n", "b = 1")
    after = edited_notebook(before, python_text(before, "a.ipynb", "").replace("b = 1", "b = 2\nc = 3"), "")
    assert after == written("a = 'ö'\n", "b = 2\n", "c = 3")


@given(SOURCES)
@settings(max_examples=200)
def test_what_is_hidden_is_what_ipython_changes(source: str) -> None:
    transformer = pytest.importorskip("IPython.core.inputtransformer2").TransformerManager()
    source = with_plain_line_ends(source)
    text = hidden(source)
    if text is None:
        assert source.strip().startswith("%%")
        return
    assert shown(text) == source
    assert len(text.split("\n")) == len(source.split("\n"))
    # IPython runs the rest of a cell with a cell magic later, takes away the indentation of the first line, ends lines
    # at form feeds, and takes what is before a question mark for a name, even on another line.
    odd = ("%%", "pip install torch", "\f", "\\\ntorch.compile?", "(1,\n")
    if not any(part in source for part in odd) and source[:1].strip():
        assert parses(lambda: text) == parses(lambda: transformer.transform_cell(source))


def parses(make: Callable[[], str]) -> bool:
    try:
        ast.parse(make())
    except SyntaxError:
        return False
    return True


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("%time f(x)", "None; f(x)"),
        ("if a:\n    %timeit -n 10 -r3 f(x)", "if a:\n    None;             f(x)"),
        ("%time", "pass"),
        ("%time for x in y: pass", "pass"),
        ("a = !ls", "a = get_ipython()"),
        ("f(x)?", "pass"),
        ('a = """\n%time f(x)\nwhy?\n"""', 'a = """\n%time f(x)\nwhy?\n"""'),
        ("a = (b\n% c)", "a = (b\n% c)"),
        ("a = b \\\n% c", "a = b \\\n% c"),
        ("!ls \\\n  a\nb = 1", "pass\npass\nb = 1"),
        ("%%time\nx = 1", "pass\nx = 1"),
        ("\n%%capture\n%%time\nx = 1", "\npass\npass\nx = 1"),
        ("cd ..", "pass"),
        ("cd = 1", "cd = 1"),
    ],
)
def test_commands_become_statements_in_their_place(source: str, text: str) -> None:
    assert [line.partition(MAGIC)[0] for line in (hidden(source) or "").split("\n")] == text.split("\n")


@pytest.mark.parametrize("source", ["%%bash\nls ((", "%%writefile a.py\nx = 1", "%%time\n%%html\n<b>"])
def test_cells_in_another_language_are_left_out(source: str) -> None:
    assert hidden(source) is None


def test_a_character_that_no_file_may_hold_is_refused() -> None:
    document = {"cells": [{"cell_type": "code", "source": f"x = '{MAGIC}'"}], "nbformat": 4}
    with pytest.raises(SourceProblem, match=r"cell 1 holds U\+FDD0"):
        python_text(json.dumps(document).encode(), "a.ipynb", "a.ipynb")


def test_new_lines_at_the_start_stay_behind_a_cell_magic() -> None:
    document = {"cells": [{"cell_type": "code", "source": ["%%time\n", "x = 1"]}], "nbformat": 4}
    data = json.dumps(document).encode()
    made = edited_notebook(data, f"import torch\n{python_text(data, 'a.ipynb', '')}", "")
    assert json.loads(made)["cells"][0]["source"] == ["%%time\n", "import torch\n", "x = 1"]
