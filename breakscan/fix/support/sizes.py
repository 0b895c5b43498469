"""Which expressions are sizes: integers that tensors or containers have, and that are not negative."""

from __future__ import annotations

import libcst as cst

from breakscan.fix.support import matchers as m
from breakscan.fix.support.called import called
from breakscan.fix.support.context import RewriteContext


def is_size(context: RewriteContext, node: cst.BaseExpression) -> bool:
    """Whether an expression is a length, which is not negative."""
    if isinstance(node, cst.Call) and called(context, node)[0] == "builtins.len":
        return True
    owner: cst.BaseExpression | None = None
    if isinstance(node, cst.Attribute) and node.attr.value == "ndim":
        owner = node.value
    elif isinstance(node, cst.Call) and context.method(node) == ("size" if node.args else "dim"):
        owner = cst.ensure_type(node.func, cst.Attribute).value
    elif isinstance(node, cst.Subscript) and m.matches(node.value, m.Attribute(attr=m.Name("shape"))):
        owner = cst.ensure_type(node.value, cst.Attribute).value
        if not m.matches(node, m.Subscript(slice=[m.SubscriptElement(m.Index())])):
            return False
    return owner is not None and context.fact(owner).is_tensor and context.fact(owner).certain
