"""The outline names functions as CPython does, and finds the function and the expressions around a line."""

import ast
import sys
from collections.abc import Iterator
from types import CodeType

import pytest

from breakscan.source.spans import Outline, without_locals

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
    ("line", "function"),
    [
        (2, None),
        (4, None),
        (6, "A.f"),
        (9, "A.f"),
        (10, "A.f.Inner.g"),
        (12, "A.f.Inner.g"),
        (16, "A.h"),
        (17, None),
        (21, "f.g"),
    ],
)
def test_the_function_at_a_line(line: int, function: str | None) -> None:
    found = Outline(ast.parse(TEXT)).function_at(line)
    assert (found and without_locals(found.qualname)) == function
