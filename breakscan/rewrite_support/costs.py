"""Operations that are too costly to compute without using the result."""

from __future__ import annotations

import libcst as cst

from breakscan.rewrite_support.context import RewriteContext
from breakscan.rewrite_support.operators import operator_of
from breakscan.rewrite_support.walking import children


def what_costs(context: RewriteContext, node: cst.CSTNode) -> str | None:
    """The code of the first costly part of an expression: a matrix product, a convolution, a module."""
    if isinstance(node, cst.Call):
        known = operator_of(context, node)
        if (known is not None and known.costly) or context.fact(node.func).kind == "module":
            return context.code(node.func)
    if isinstance(node, cst.BinaryOperation) and isinstance(node.operator, cst.MatrixMultiply):
        return context.code(node)
    for child in children(node):
        if (found := what_costs(context, child)) is not None:
            return found
    return None
