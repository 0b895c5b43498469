"""The operations that leave the graph with code that is no longer compiled."""

from __future__ import annotations

import libcst as cst

from breakscan.fix.support import matchers as m
from breakscan.fix.support.called import called
from breakscan.fix.support.context import RewriteContext
from breakscan.fix.support.difference import TakenOut
from breakscan.fix.support.walking import findall

_OPERATORS = cst.BinaryOperation | cst.UnaryOperation | cst.Comparison


def taken_out(context: RewriteContext, node: cst.CSTNode) -> TakenOut:
    """The operations in a statement or function: names of torch functions and operator symbols."""
    operations: list[str] = []
    is_complete = True
    for one in findall(node, m.Call() | m.BinaryOperation() | m.UnaryOperation() | m.Comparison()):
        if not context.tree.holds(one):
            continue
        kind = context.fact(one).kind
        if kind == "tensor":
            operations.append(_name(context, one))
        elif kind == "unknown":
            is_complete = False
    return TakenOut(tuple(operations), is_complete)


def _name(context: RewriteContext, node: cst.CSTNode) -> str:
    if isinstance(node, cst.Call):
        function, method = called(context, node)
        return method or (function or context.code(node.func)).rpartition(".")[2]
    assert isinstance(node, _OPERATORS)
    sign = node.comparisons[0].operator if isinstance(node, cst.Comparison) else node.operator
    return context.code(sign).strip()
