"""Expressions that are Python numbers, and those that are sizes."""

from __future__ import annotations

import libcst as cst

from breakscan.fix.support import matchers as m
from breakscan.fix.support.context import RewriteContext
from breakscan.fix.support.operators import called

_CONSTANT = m.Attribute(
    value=m.OneOf(*(m.Name(name) for name in ("math", "torch", "np", "numpy"))),
    attr=m.OneOf(*(m.Name(name) for name in ("inf", "nan", "pi", "e"))),
)
_WRITTEN = (
    m.Integer() | m.Float() | m.Imaginary() | m.Call(func=m.Name("float"), args=[m.Arg(m.SimpleString())]) | _CONSTANT
)
_LIMIT = m.Attribute(
    value=m.Call(func=m.Attribute(value=m.Name("torch"), attr=m.Name("finfo") | m.Name("iinfo"))),
    attr=m.OneOf(*(m.Name(name) for name in ("min", "max", "eps", "tiny", "smallest_normal"))),
)


def is_number(context: RewriteContext, node: cst.BaseExpression) -> bool:
    """True if an expression is known to be a Python number: a literal, read from a tensor, or a limit of a dtype."""
    while isinstance(node, cst.UnaryOperation) and isinstance(node.operator, cst.Minus | cst.Plus):
        node = node.expression
    return context.fact(node).is_number or m.matches(node, _WRITTEN | _LIMIT)


def written_number(node: cst.BaseExpression) -> int | float | complex | None:
    """The value of a number literal, with its sign."""
    if isinstance(node, cst.UnaryOperation) and isinstance(node.operator, cst.Minus | cst.Plus):
        value = written_number(node.expression)
        return value if value is None or isinstance(node.operator, cst.Plus) else -value
    return node.evaluated_value if isinstance(node, cst.Integer | cst.Float | cst.Imaginary) else None


def is_size(context: RewriteContext, node: cst.BaseExpression) -> bool:
    """True if an expression is a length or a size of a tensor, which is an integer and not negative."""
    if isinstance(node, cst.Call) and called(context, node)[0] == "builtins.len":
        return True
    owner: cst.BaseExpression | None = None
    if isinstance(node, cst.Attribute) and node.attr.value == "ndim":
        owner = node.value
    elif isinstance(node, cst.Call) and context.method(node) == ("size" if node.args else "dim"):
        owner = cst.ensure_type(node.func, cst.Attribute).value
    elif m.matches(node, m.Subscript(m.Attribute(attr=m.Name("shape")), [m.SubscriptElement(m.Index())])):
        owner = cst.ensure_type(cst.ensure_type(node, cst.Subscript).value, cst.Attribute).value
    return owner is not None and context.fact(owner).is_tensor and context.fact(owner).certain
