from __future__ import annotations

from breakscan.repair.line_map import LineMap

BEFORE = """\
def f(x):
    if not x.sum():
        return 0

    y = x[x > 0]
    return y.mean()
"""
AFTER = """\
def f(x):
    y = x[x > 0]
    return where(
        x.sum() == 0,
        0,
        y.mean(),
    )

"""


def test_a_line_that_only_moves_is_where_it_was() -> None:
    lines = LineMap(BEFORE, AFTER)
    assert lines.before(1) == 1
    assert lines.before(2) == 5
    assert 2 <= lines.before(3) <= 3


def test_of_equal_lines_none_is_said_to_have_moved() -> None:
    lines = LineMap("a = 1\nif c:\n    b = 2\nelse:\n    b = 2\n", "a = 1\nb = 2\n")
    assert lines.before(2) == 2
