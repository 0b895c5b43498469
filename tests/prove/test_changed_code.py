"""Changed code: whether it has run, and which tests of the old text it replaces."""

import ast
import sys
from pathlib import Path
from typing import Any

import pytest

from breakscan.fix.source_map import SourceMap
from breakscan.prove.changed_code import UnseenKind, changed_code_ran, lines_around, replaced_tests, unrun
from breakscan.prove.overlay import ExecutedCode
from breakscan.prove.protocol import RanCode

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

f = torch.compile(f, mode="default" if fast else None, backend="eager" if slow else "inductor")
"""


def test_changed_lines_around_a_call_are_those_of_scopes_that_run() -> None:
    text = "def f(x):\n    y = x\n    return y\nfor i in range(3):\n    z = f(i)\n    print(z)\n"
    assert lines_around(text, {2, 6}, {1, 4, 5}) == {6}
    assert lines_around(text, {2, 6}, {2}) == {2}


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("    z = y * 3\n", "    z = 3 * y\n", []),
        ("    if y > 0 and not flag:\n        return y\n", "    pass\n", ["y > 0", "flag"]),
        ("    if z > 5: z = 1 if flag else 2\n", "", ["z > 5", "flag"]),
        ("    if is_compiling():\n        z = 4\n", "    z = 4\n", []),
        ("return x or 3", "return x", ["x"]),
        # What decides how something is compiled.
        ("f = torch.compile(f, mode=", "f = torch.compile(f, dynamic=True, mode=", ["slow"]),
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
    first, second = BEFORE.split("\n\n\n")
    after = f"{second}\n\n{first}\n"
    assert replaced_tests(BEFORE, after, SourceMap.of_change(BEFORE, after)) == [], "functions change places"


CODE = """\
import os


class A:
    x = 1

    @property
    def f(self):
        if self.x:
            return g(
                1,
                2,
            )
        return 3


def g(a, b):
    print(a)
    return b
"""


@pytest.mark.parametrize(
    ("old", "new", "executed", "ran"),
    [
        pytest.param("return b", "return b + 1", {19}, True, id="the line ran"),
        pytest.param("return b", "return b + 1", {18}, False, id="another line ran"),
        pytest.param("                2,\n", "                4,\n", {10}, True, id="inside a statement"),
        pytest.param("if self.x:", "if self.x > 0:", {9}, True, id="the head of a compound statement"),
        pytest.param("if self.x:", "if self.x > 0:", {10}, False, id="not its body"),
        pytest.param("    @property\n", "    @cached\n", {14}, True, id="a decorator runs with its function"),
        pytest.param("    @property\n", "    @cached\n", {18}, False, id="and not with another"),
        pytest.param("    print(a)\n", "", {18}, True, id="what is gone is told by its neighbours"),
        pytest.param("x = 1", "x = 2", set(), True, id="outside of functions"),
        pytest.param("import os", "import sys", {1}, True, id="an import"),
        pytest.param("return b", "b += 1; return b", {19}, True, id="two statements on a line"),
        pytest.param("import os\n\n", "import os\n# a comment\n", {1}, None, id="a comment is no code"),
    ],
)
def test_whether_changed_code_ran(old: str, new: str, executed: set[int], ran: bool | None) -> None:
    after = CODE.replace(old, new, 1)
    assert changed_code_ran(after, SourceMap.of_change(CODE, after), executed) is ran


GUARDED = """\
def f(x):
    if x.dtype == half:
        y = where(x > 0, x, 0)
    if not torch.compiler.is_compiling():
        check(x)
    else:
        assert_async(x)
    return y
"""


def unrun_code(before: str, after: str, ran: RanCode) -> list[str]:
    lines = SourceMap.of_change(before, after)
    return [one.code for one in unrun(UnseenKind.NEW, "it.py", after, before, lines.changed_lines(), ran)]


def test_new_lines_that_did_not_run_are_named() -> None:
    before = "def f(x):\n    check(x)\n    if x.dtype == half and x.any():\n        y = x\n    return y\n"
    assert unrun_code(before, GUARDED, RanCode(frozenset({2, 4, 8}))) == ["y = where(x > 0, x, 0)"]
    assert unrun_code(before, GUARDED, RanCode(frozenset({2, 3, 4, 8}))) == []


@pytest.mark.parametrize(
    ("code", "named"),
    [
        ("    y = 2 if x > 9 else 3", ["2"]),
        ("    y = x > 9 and g(x)", ["g(x)"]),
        ("    y = lambda z: z + 5", ["z + 5"]),
        ("    y = [z * 2 for z in ()]", ["z * 2"]),
        ("    try: y = g(x)\n    except ValueError: y = 7", ["except ValueError: y = 7"]),
        ("    y = x\n    for z in ():\n        y = z", ["y = z"]),
        ("    y = h(x)\n    def unused():\n        return 4", ["return 4"]),
        ("    y = h(x, k=1)", []),
        ("    'A text.'\n    y = x + 1", []),
        ("    def i(k=8): return k\n    y = i(9)", ["k=8"]),
        ("    def i(k=8): return k\n    y = i()", []),
    ],
)
@pytest.mark.skipif(sys.version_info < (3, 11), reason="Python 3.10 knows the lines of instructions alone")
def test_new_code_that_did_not_run_is_named(tmp_path: Path, code: str, named: list[str]) -> None:
    before = "def g(x):\n    return x\n\n\ndef h(x, k=2):\n    return x + k\n\n\ndef f(x):\n    y = x\n    return y\n"
    after = before.replace("    y = x\n", f"{code}\n")
    path = str(tmp_path / "it.py")
    names: dict[str, Any] = {}
    exec(compile(after, path, "exec"), names)
    with ExecutedCode([path]).noted(closely=True) as ran:
        names["f"](1)
    assert unrun_code(before, after, ran.found()[path]) == named


@pytest.mark.parametrize(("made", "named"), [("compile(g, dynamic=True)", []), ("compile(h)", ["compile(h)"])])
def test_options_of_compile_are_no_new_code(made: str, named: list[str]) -> None:
    text = "f = torch.{} if arguments.compile else g\n"
    ran = RanCode(frozenset({1}), frozenset({(9, 0, 9, 1)}))
    assert unrun_code(text.format("compile(g)"), text.format(made), ran) == [f"torch.{one}" for one in named]


def test_a_statement_that_did_not_run_is_new_whatever_its_options() -> None:
    text = "def f(x):\n    if x:\n        x = schema.compile(mode={})\n    return x\n"
    assert unrun_code(text.format(1), text.format(2), RanCode(frozenset({2, 4}))) == ["x = schema.compile(mode=2)"]
