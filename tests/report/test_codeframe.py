"""Lines of code with a span underlined."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from breakscan.model.findings import Site
from breakscan.report.console import FrameRow, frame_rows


def rows(text: str, line: int, column: int, end_line: int, end_column: int, width: int = 80) -> list[FrameRow]:
    return list(frame_rows(text.split("\n"), Site("x.py", line, column, end_line, end_column), width))


def marked(row: FrameRow) -> str:
    """The glyphs above the underline."""
    assert row.mark is not None
    shown, at = "", 0
    for glyph in row.text:
        if row.mark[0] <= at < row.mark[1]:
            shown += glyph
        at += cell_len(glyph)
    return shown


def test_the_span_is_marked_and_the_line_above_is_shown() -> None:
    above, line = rows("for h in heads:\n    if x.any():\n        pass", 2, 8, 2, 15)
    assert above == FrameRow(1, "for h in heads:", None)
    assert line == FrameRow(2, "    if x.any():", (7, 14))


def test_a_blank_line_above_is_left_out() -> None:
    assert [row.number for row in rows("a = 1\n\nb = 2", 3, 1, 3, 2)] == [3]


@pytest.mark.parametrize(
    ("text", "span"),
    [
        ("\tif\tx.any():", "x.any()"),
        ("größe = 模型(x); y = x.any()", "x.any()"),
        ("模 = 模型.any()", "模型.any()"),
        ("s = '\x1b[31m\x07'; x.any()", "x.any()"),
        ("s = 'e\u0301'; x.any()", "x.any()"),
        ("s = '👩‍🔬'; x.any()", "x.any()"),
    ],
)
def test_tabs_wide_and_invisible_characters_stay_in_line(text: str, span: str) -> None:
    start = text.index(span) + 1
    (row,) = rows(text, 1, start, 1, start + len(span))
    assert marked(row) == span
    assert "\t" not in row.text
    assert "\x1b" not in row.text, "a source line must not steer the terminal"


def test_each_line_of_a_longer_span_is_marked_from_its_first_character() -> None:
    text = "x = f(\n    a,\n    b,  \n)\n"
    assert [marked(row) for row in rows(text, 1, 5, 4, 2)] == ["f(", "a,", "b,", ")"]


def test_of_a_long_span_the_middle_is_left_out() -> None:
    text = "\n".join(["f("] + [f"    a{n}," for n in range(20)] + [")"])
    shown = rows(text, 1, 1, 22, 2)
    assert [row.number for row in shown] == [1, 2, 3, 4, None, 22]
    assert shown[4].mark is None


@pytest.mark.parametrize("at", [0, 5, 100, 180, 193])
def test_a_long_line_is_cut_around_the_span(at: int) -> None:
    text = "a" * at + "x.any()" + "b" * (193 - at)
    (row,) = rows(text, 1, at + 1, 1, at + 8, width=60)
    assert cell_len(row.text) <= 60
    assert marked(row) == "x.any()"
    assert row.text.startswith("…") == (at > 60)
    assert row.text.endswith("…") == (at < 150), "only where something is cut off"


def test_an_empty_span_is_one_cell_wide() -> None:
    (row,) = rows("x =", 1, 4, 1, 4)
    assert row.mark == (3, 4)


@pytest.mark.parametrize("line", [0, 3, 99])
def test_a_file_that_has_changed_since_gives_no_rows(line: int) -> None:
    assert rows("a\nb", line, 1, line, 2) == []


@given(st.text(max_size=300), st.integers(1, 320), st.integers(0, 40), st.integers(20, 100))
def test_nothing_is_wider_than_it_may_be(text: str, column: int, length: int, width: int) -> None:
    text = text.replace("\n", " ")
    for row in rows(text, 1, column, 1, column + length, width):
        assert cell_len(row.text) <= width
        assert row.mark is not None
        assert 0 <= row.mark[0] < row.mark[1] <= width
