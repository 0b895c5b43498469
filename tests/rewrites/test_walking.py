"""The fast walk over libcst's nodes gives what libcst gives, on the code of breakscan itself."""

from __future__ import annotations

from pathlib import Path

import libcst as cst
import libcst.matchers as m
import pytest

import breakscan
from breakscan.rewrite_support.walking import findall, walk

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
MATCHERS = [
    m.Name(),
    m.Call(func=m.Attribute()),
    m.IfExp() | m.Lambda() | m.FunctionDef(),
    m.Name("context") | m.Arg(keyword=m.Name()),
]


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


@pytest.mark.parametrize("matcher", MATCHERS, ids=lambda one: type(one).__name__)
def test_what_a_matcher_matches_is_found_in_the_order_of_the_text(
    modules: list[cst.Module], matcher: m.BaseMatcherNode
) -> None:
    for module in modules:
        assert [id(one) for one in findall(module, matcher)] == [id(one) for one in m.findall(module, matcher)]
