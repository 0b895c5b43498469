"""The outline names functions as CPython does, and finds the function and the expressions around a line."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path
from types import CodeType

import pytest

from breakscan.model.findings import Site
from breakscan.source.module import parse_module
from breakscan.source.spans import Outline, may_be_skipped, without_locals

TEXT = """
first = lambda: 0

class A(make(lambda: 1)):
    @decorate(lambda g: g)
    @plain
    def f(self, given=lambda: 2):
        class Inner:
            attribute = 3
            def g(self):
                return lambda: (
                    lambda: 4
                )
        return Inner

    async def h(self): return 5

if condition:
    def f():
        def g():
            pass
"""


def code_objects(code: CodeType) -> Iterator[CodeType]:
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield constant
            yield from code_objects(constant)


@pytest.mark.skipif(sys.version_info < (3, 11), reason="code objects have no qualified name")
def test_names_and_lines_are_those_of_the_code_objects() -> None:
    expected = sorted((c.co_firstlineno, c.co_qualname) for c in code_objects(compile(TEXT, "<text>", "exec")))
    assert sorted((scope.first_line, scope.qualname) for scope in Outline(ast.parse(TEXT)).scopes) == expected


@pytest.mark.parametrize(
    ("line", "function", "with_lambdas"),
    [
        (2, None, "<lambda>"),
        (4, None, "<lambda>"),
        (6, "A.f", "A.f"),
        (9, "A.f", "A.f"),
        (10, "A.f.Inner.g", "A.f.Inner.g"),
        (12, "A.f.Inner.g", "A.f.Inner.g.<lambda>.<lambda>"),
        (16, "A.h", "A.h"),
        (17, None, None),
        (21, "f.g", "f.g"),
    ],
)
def test_the_function_at_a_line(line: int, function: str | None, with_lambdas: str | None) -> None:
    outline = Outline(ast.parse(TEXT))
    found, innermost = outline.function_at(line), outline.function_at(line, lambdas=True)
    assert (found and without_locals(found.qualname)) == function
    assert (innermost and innermost.path) == with_lambdas


@pytest.mark.parametrize(
    ("text", "part", "expected"),
    [
        ("y = a if b else c", "a", True),
        ("y = a if b else c", "b", False),
        ("y = a and b", "a", False),
        ("y = a and b", "b", True),
        ("y = [v for v in w]", "v for", True),
        ("y = [v for v in w] + z", "[v for v in w] + z", False),
        ("y = f(lambda: a)", "a)", True),
        ("y = f(a)", "a", False),
    ],
)
def test_what_may_be_skipped_when_its_line_runs(text: str, part: str, expected: bool) -> None:
    column = text.index(part) + 1
    site = Site("a.py", 1, column, 1, column + len(part.removesuffix(" for").removesuffix(")")))
    assert may_be_skipped(site, parse_module(text, Path("a.py"), "a.py")) is expected
