"""The fast matchers, walks and spans of libcst's nodes give what libcst gives."""

from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import libcst as cst
import libcst.matchers
import pytest
from libcst.metadata import MetadataWrapper, PositionProvider

import breakscan
from breakscan.fix.support import matchers
from breakscan.fix.support.walking import findall, spans_in, walk

SNIPPET = """
import math
from torch import *

class C(Base):
    def f(self, x: int = 1, *args, **kwargs):
        other.b = g()
        self.a, y = x, -x
        for i, in x: pass
        x[0] = math.inf if x else other.inf
        x.add_(1).view(-1, *y)
        setattr(self, "a", 1, requires_grad=False)
        f(x, requires_grad=x, **kwargs)
        if x: return 2; raise E
        else: continue
        assert x, f"{x}" "text"
        return
"""

MATCHERS: dict[str, Callable[[Any], Any]] = {
    "a type": lambda m: m.Name(),
    "a text": lambda m: m.Name("x"),
    "a field by name": lambda m: m.Attribute(attr=m.Name("inf")),
    "fields by position": lambda m: m.Attribute(m.Name("math"), m.Name("inf")),
    "one of several": lambda m: m.Attribute(value=m.OneOf(m.Name("math"), m.Name("x"))),
    "a type or another": lambda m: m.Integer("1") | m.Return() | m.Raise(),
    "nothing": lambda m: m.Return(value=None),
    "a sequence": lambda m: m.Call(args=[m.Arg(m.Integer("1"))]),
    "an empty sequence": lambda m: m.Call(args=[]) | m.Tuple([]),
    "a function": lambda m: m.Name(m.MatchIfTrue({"x", "y"}.__contains__)),
    "a pattern for the whole text": lambda m: m.Call(func=m.Attribute(attr=m.Name(m.MatchRegex(r".*[^_]_|vie")))),
    "not": lambda m: m.Arg(keyword=m.Name("requires_grad"), value=~m.Name("False")),
    "not, in an attribute": lambda m: m.AssignTarget(m.Attribute(value=~m.Name("self"))),
    "a star": lambda m: m.Arg(star="**"),
    "operators": lambda m: m.UnaryOperation(m.Minus()),
    "a field that need not be there": lambda m: m.Param(annotation=m.Annotation()),
}


@pytest.mark.parametrize("make", MATCHERS.values(), ids=MATCHERS)
def test_a_matcher_matches_as_that_of_libcst_does(make: Callable[[ModuleType], Any]) -> None:
    theirs, ours = make(libcst.matchers), make(matchers)
    nodes = list(walk(cst.parse_module(SNIPPET)))
    expected = [libcst.matchers.matches(node, theirs) for node in nodes]
    assert [matchers.matches(node, ours) for node in nodes] == expected
    assert any(expected)
    assert not all(expected)


FILES = sorted((Path(breakscan.__file__).parent / "fix/rewrites").glob("*.py"))[::5]
FOUND: dict[str, Callable[[Any], Any]] = {
    "a type": lambda m: m.Name(),
    "a field": lambda m: m.Call(func=m.Attribute()),
    "several types": lambda m: m.IfExp() | m.Lambda() | m.FunctionDef(),
    "several fields": lambda m: m.Name("context") | m.Arg(keyword=m.Name()),
    "statements": lambda m: m.SimpleStatementLine() | m.Expr() | m.Assign() | m.If() | m.Else() | m.IndentedBlock(),
    "parts": lambda m: m.Param() | m.Decorator() | m.Index() | m.ComparisonTarget() | m.BitOr() | m.IsNot() | m.Not(),
}


@pytest.fixture(scope="module")
def modules() -> list[cst.Module]:
    return [cst.parse_module(path.read_text(encoding="utf-8")) for path in FILES]


@pytest.mark.parametrize("make", FOUND.values(), ids=FOUND)
def test_what_a_matcher_matches_is_found_in_the_order_of_the_text(
    modules: list[cst.Module], make: Callable[[ModuleType], Any]
) -> None:
    ours, theirs = make(matchers), make(libcst.matchers)
    for module in modules:
        expected = [id(one) for one in libcst.matchers.findall(module, theirs)]
        assert [id(one) for one in findall(module, ours)] == expected


TEXTS = {
    "decorators, defaults and comments": """# above
@first
@second(a=1)  # beside
class A(B, metaclass=C):
    '''Documentation
    of two lines.'''

    # between
    async def f(self, /, a: int = 1, *b, c=(2), **d) -> None:
        async with open(a) as x, open(b):
            return await g(*a, **d)  # end
""",
    "continued lines": "x = (\n    1,\n\n    # inside\n    2,\n)\ny = a + \\\n    b; z = [i for i in y if i]\n",
    "strings": "x = f'{a!r:>{b}} {c}' 'd' '''e\nf'''\ny = '\\t\\u2028' + '\t\u2028é'\n",
    "compound statements": """if a: pass
elif (b := c):
\twhile d: break
\telse:
\t\tdel e, f
try:
    raise X from Y
except* (P, Q) as r:
    assert s, t
finally:
    global u
match v:
    case {"k": [1, *_], **rest} if w:
        lambda *, k=1: (yield)
""",
    "other line ends": "def f(x):\r\n    return -x if not x else x[1:2, ...]\r\n",
    "no line end": "x = 1  # end",
    "nothing": "",
}


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_spans_are_those_of_libcst(text: str) -> None:
    module = cst.parse_module(text)
    positions = MetadataWrapper(module, unsafe_skip_copy=True).resolve(PositionProvider)
    assert spans_in(module) == {
        node: (at.start.line, at.start.column + 1, at.end.line, at.end.column + 1) for node, at in positions.items()
    }
