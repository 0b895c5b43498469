"""Reading and parsing one file, and counting columns as people do."""

import ast
import codecs
import warnings
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from breakscan.model.findings import Site
from breakscan.source.module import SourceModule, SourceProblem, decode_source, parse_module, read_source
from breakscan.source.paths import display_path


def _read(path: Path, display: str) -> SourceModule:
    return parse_module(decode_source(read_source(path, display), display), path, display)


def module(text: str) -> SourceModule:
    return parse_module(text, Path("x.py"), "x.py")


def problem_of(path: Path, data: bytes) -> tuple[int, int, str]:
    path.write_bytes(data)
    with pytest.raises(SourceProblem) as caught:
        _read(path, "shown.py")
    error = caught.value.error
    assert error.path == "shown.py"
    return error.line, error.column, error.message


@pytest.mark.parametrize(
    ("data", "name"),
    [
        ("größe = 1\n".encode(), "größe"),
        (codecs.BOM_UTF8 + "größe = 1\n".encode(), "größe"),
        ("# -*- coding: latin-1 -*-\ngröße = 1\n".encode("latin-1"), "größe"),
        ("#!/usr/bin/env python\n# vim: set fileencoding=cp1251 :\nя = 1\n".encode("cp1251"), "я"),
        (b"", None),
        (b"\n\n", None),
    ],
)
def test_encodings_are_those_of_python(tmp_path: Path, data: bytes, name: str | None) -> None:
    path = tmp_path / "x.py"
    path.write_bytes(data)
    tree = _read(path, "x.py").tree
    assert [node.id for node in ast.walk(tree) if isinstance(node, ast.Name)] == ([name] if name else [])


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_all_line_ends_count_alike(tmp_path: Path, end: str) -> None:
    path = tmp_path / "x.py"
    path.write_bytes(
        f"a = 1{end}{end}b = '\\x0c'  # \x0c form feed, \u2028 and \x1c end no line{end}c = 3{end}".encode()
    )
    read = _read(path, "x.py")
    assert [node.lineno for node in read.tree.body] == [1, 3, 4]
    assert [read.lines[node.lineno - 1][0] for node in read.tree.body] == ["a", "b", "c"]


@pytest.mark.parametrize(
    ("data", "line", "column", "said"),
    [
        (b"x = 1\ny = f(\n", 2, 6, "cannot be parsed: '(' was never closed"),
        (b"def f(:\n    pass\n", 1, 7, "cannot be parsed: invalid syntax"),
        (b"if x:\npass\n", 2, 1, "cannot be parsed: expected an indented block"),
        ("größe = 1 +\n".encode(), 1, 12, "cannot be parsed: invalid syntax"),
        (b"a = 1\nb = '\0'\n", 2, 6, "cannot be parsed: a NUL byte in the source"),
        (b"a = 1\nb = 'gr\xfc\xdfe'\n", 2, 8, "cannot be decoded: not valid UTF-8"),
        (b"# fine\n# fine\n\xc3\xa4 = '\xff'\n", 3, 6, "cannot be decoded: not valid UTF-8"),
        (b"# coding: ascii\n\nx = '\xe4'\n", 3, 6, "cannot be decoded: not valid ASCII"),
        (b"# coding: klingon\n", 1, 1, "cannot be decoded: unknown encoding: klingon"),
        (b"# coding: rot13\nk = 1\n", 1, 1, "cannot be decoded: "),
        ("x = 1\n".encode("utf-16"), 1, 1, "cannot be decoded: not valid UTF-8"),
        (b"x = " + b"(" * 5000 + b")" * 5000, 1, None, "cannot be parsed: "),
        (b"x = " + b"-" * 200_000 + b"1", 1, 1, "cannot be parsed: nested too deeply"),
    ],
)
def test_what_cannot_be_read_says_where_and_why(
    tmp_path: Path, data: bytes, line: int, column: int | None, said: str
) -> None:
    found = problem_of(tmp_path / "x.py", data)
    assert found[0] == line
    assert found[1] == column or column is None
    assert found[2].startswith(said)


def test_a_file_that_cannot_be_opened(tmp_path: Path) -> None:
    with pytest.raises(SourceProblem) as caught:
        _read(tmp_path / "gone.py", "gone.py")
    assert caught.value.error.message == "cannot be read: No such file or directory"
    with pytest.raises(SourceProblem, match="cannot be read: Is a directory"):
        _read(tmp_path, "folder")


def test_the_warnings_of_the_parser_stay_inside(recwarn: pytest.WarningsRecorder) -> None:
    warnings.simplefilter("always")
    module("x = '\\d' if 1 is 1 else 2\n")
    assert not recwarn.list


@given(st.text(st.characters(codec="utf-8", exclude_characters="\n\r\0\\'"), max_size=20), st.text(max_size=5))
def test_columns_count_characters(before: str, name: str) -> None:
    text = f"x = '{before}', value\n"
    read = module(text)
    found = next(n for n in ast.walk(read.tree) if isinstance(n, ast.Name) and n.id == "value")
    column = read.column(found.lineno, found.col_offset)
    assert text[column - 1 :] == "value\n"
    assert found.end_col_offset is not None
    assert read.column(found.lineno, found.end_col_offset) == column + len("value")
    site = Site("x.py", found.lineno, column, found.lineno, column + len("value"))
    assert read.segment(site) == "value"


def test_segments_span_lines() -> None:
    read = module("größe = f(\n    a,\n    b)  # c\n")
    assert read.segment(Site("x.py", 1, 9, 3, 7)) == "f(\n    a,\n    b)"
    assert read.segment(Site("x.py", 2, 5, 2, 6)) == "a"


@given(st.binary(max_size=200))
def test_any_bytes_decode_or_are_a_problem(data: bytes) -> None:
    problem = None
    try:
        module(decode_source(data, "x.py"))
    except SourceProblem as caught:
        problem = caught.error
    assert problem is None or (problem.line >= 1 and problem.column >= 1 and problem.message)


@pytest.mark.parametrize(
    ("path", "shown"),
    [
        ("/work/src/a.py", "src/a.py"),
        ("src/./b/../a.py", "src/a.py"),
        ("/other/a.py", "/other/a.py"),
        ("/workshop/a.py", "/workshop/a.py"),
        ("../a.py", "/a.py"),
    ],
)
def test_a_path_is_shown_relative_where_it_lies_below(path: str, shown: str) -> None:
    assert display_path(path, Path("/work")) == shown
