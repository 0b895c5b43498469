"""The fast walk over libcst's nodes gives what libcst gives, on the code of breakscan itself."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import libcst as cst
import libcst.matchers
import pytest

import breakscan
from breakscan.fix.support import matchers
from breakscan.fix.support.walking import findall, walk

CODE = (
    cst.BaseExpression,
    cst.BaseSmallStatement,
    cst.BaseCompoundStatement,
    cst.BaseUnaryOp,
    cst.BaseBinaryOp,
    cst.BaseCompOp,
    cst.BaseSuite,
    cst.Arg,
    cst.Param,
    cst.Decorator,
    cst.SimpleStatementLine,
)
FILES = sorted((Path(breakscan.__file__).parent / "rewrites").glob("*.py"))
MATCHERS: dict[str, Callable[[Any], Any]] = {
    "a type": lambda m: m.Name(),
    "a field": lambda m: m.Call(func=m.Attribute()),
    "several types": lambda m: m.IfExp() | m.Lambda() | m.FunctionDef(),
    "several fields": lambda m: m.Name("context") | m.Arg(keyword=m.Name()),
}


class _Visited(cst.CSTVisitor):
    def __init__(self) -> None:
        super().__init__()
        self.nodes: list[cst.CSTNode] = []

    def on_visit(self, node: cst.CSTNode) -> bool:
        self.nodes.append(node)
        return True


@pytest.fixture(scope="module")
def modules() -> list[cst.Module]:
    return [cst.parse_module(path.read_text(encoding="utf-8")) for path in FILES]


def test_a_walk_meets_every_node_of_code(modules: list[cst.Module]) -> None:
    for module in modules:
        visited = _Visited()
        module.visit(visited)
        code = [node for node in visited.nodes if isinstance(node, CODE)]
        assert {id(node) for node in code} <= {id(node) for node in walk(module)}


@pytest.mark.parametrize("make", MATCHERS.values(), ids=MATCHERS)
def test_what_a_matcher_matches_is_found_in_the_order_of_the_text(
    modules: list[cst.Module], make: Callable[[ModuleType], Any]
) -> None:
    ours, theirs = make(matchers), make(libcst.matchers)
    for module in modules:
        expected = [id(one) for one in libcst.matchers.findall(module, theirs)]
        assert [id(one) for one in findall(module, ours)] == expected
