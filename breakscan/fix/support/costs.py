"""Operations that are too costly to compute without using the result."""

from __future__ import annotations

import libcst as cst

from breakscan.fix.support import matchers as m
from breakscan.fix.support.context import RewriteContext
from breakscan.fix.support.operators import operator_of
from breakscan.fix.support.walking import findall


def what_costs(context: RewriteContext, node: cst.CSTNode) -> str | None:
    """The code of the first costly part of an expression: a matrix product, a convolution, a module."""
    for one in findall(node, m.Call() | m.BinaryOperation()):
        if isinstance(one, cst.Call):
            known = operator_of(context, one)
            if (known is not None and known.costly) or context.fact(one.func).kind == "module":
                return context.code(one.func)
        if isinstance(one, cst.BinaryOperation) and isinstance(one.operator, cst.MatrixMultiply):
            return context.code(one)
    return None
