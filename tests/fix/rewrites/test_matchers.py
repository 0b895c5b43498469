"""Matchers mean what those of libcst mean."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

import libcst as cst
import libcst.matchers
import pytest

from breakscan.fix.support import matchers
from breakscan.fix.support.walking import walk

CODE = """
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
    "a sequence that goes on": lambda m: m.Call(args=[m.Arg(m.Name("x")), m.AtLeastN(n=0)]),
    "at least some": lambda m: m.Call(args=[m.AtLeastN(n=2)]),
    "at least some of a type": lambda m: m.SimpleStatementLine(body=[m.AtLeastN(m.Return() | m.Raise(), n=1)]),
    "any number of a kind": lambda m: m.Call(args=[m.AtLeastN(m.Arg(keyword=None), n=0)]),
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
    nodes = list(walk(cst.parse_module(CODE)))
    expected = [libcst.matchers.matches(node, theirs) for node in nodes]
    assert [matchers.matches(node, ours) for node in nodes] == expected
    assert any(expected)
    assert not all(expected)
