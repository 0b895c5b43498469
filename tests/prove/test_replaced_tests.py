"""Which tests of the old text a change replaces."""

from __future__ import annotations

import ast

import pytest

from breakscan.fix.source_map import SourceMap
from breakscan.prove.changed_code import replaced_tests

BEFORE = """\
def f(x, flag):
    y = x + 1
    if y > 0 and not flag:
        return y
    z = y * 3
    if z > 5: z = 1 if flag else 2
    if is_compiling():
        z = 4
    return z


def g(x):
    return x or 3
"""


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("    z = y * 3\n", "    z = 3 * y\n", []),
        ("    if y > 0 and not flag:\n        return y\n", "    pass\n", ["y > 0", "flag"]),
        ("    if z > 5: z = 1 if flag else 2\n", "", ["z > 5", "flag"]),
        ("    if is_compiling():\n        z = 4\n", "    z = 4\n", []),
        ("return x or 3", "return x", ["x"]),
        # Code moves across a test of its function.
        ("    z = y * 3\n    if z", "    if z", []),
        (
            "    if y > 0 and not flag:\n        return y\n    z = y * 3\n",
            "    z = y * 3\n    if y > 0 and not flag:\n        return y\n",
            ["y > 0", "flag"],
        ),
        # It is only indented.
        (
            "    if y > 0 and not flag:\n        return y\n",
            "    with no_grad():\n        if y > 0 and not flag:\n            return y\n",
            [],
        ),
    ],
)
def test_replaced(old: str, new: str, expected: list[str]) -> None:
    assert old in BEFORE
    after = BEFORE.replace(old, new)
    found = replaced_tests(BEFORE, after, SourceMap.of_change(BEFORE, after))
    assert [ast.unparse(test) for test in found] == expected


def test_code_that_moves_into_another_function_does_not_count() -> None:
    helper = "def triple(y):\n    z = y * 3\n    return z\n\n\n"
    after = helper + BEFORE.replace("    z = y * 3\n", "    z = triple(y)\n").replace(
        "    return z\n", "    return +z\n"
    )
    assert replaced_tests(BEFORE, after, SourceMap.of_change(BEFORE, after)) == []


def test_functions_that_change_places_do_not_count() -> None:
    first, second = BEFORE.split("\n\n\n")
    after = f"{second}\n\n{first}\n"
    assert replaced_tests(BEFORE, after, SourceMap.of_change(BEFORE, after)) == []
