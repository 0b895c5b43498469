"""Whether a name holds a tensor that nothing else shares: then it may be bound anew instead of changed in place."""

from __future__ import annotations

import libcst as cst
import libcst.matchers as m

from breakscan.rewrite_support.assignments import origin
from breakscan.rewrite_support.context import RewriteContext
from breakscan.rewrite_support.operators import makes_new, operator_of

_ONLY_LOOKED_AT = frozenset({"shape", "dtype", "device", "ndim"})


def is_unshared(spot: RewriteContext, name: cst.Name) -> bool:
    """Whether a name holds, at its place, a tensor that was made for it and that no other name can reach."""
    found = origin(spot, name)
    if found.value is None or found.anchor is None or not _makes_new(spot, found.value):
        return False
    start, stop = spot.tree.span(found.anchor)[2:], spot.tree.span(spot.statement(name))[:2]
    for loop in spot.around(name):
        if isinstance(loop, cst.FunctionDef):
            break
        if isinstance(loop, cst.For | cst.While) and spot.tree.span(loop)[:2] >= start:
            stop = max(stop, spot.tree.span(loop)[2:])
    reads = [one for one in m.findall(spot.function, m.Name(name.value)) if one in spot.tree.parents]
    between = [one for one in reads if one is not name and start <= spot.tree.span(one)[:2] < stop]
    return all(_is_harmless(spot, one) for one in between)


def _makes_new(spot: RewriteContext, value: cst.BaseExpression) -> bool:
    facts = spot.fact(value).tensor
    return not isinstance(value, cst.Name) and spot.fact(value).is_tensor and facts is not None and facts.is_new


def _is_harmless(spot: RewriteContext, read: cst.CSTNode) -> bool:
    """Whether a use of a tensor makes no second way to it."""
    if isinstance(spot.parent(read), cst.Attribute) and spot.parent(read).attr is read:  # type: ignore[union-attr]
        return True
    above = spot.parent(read)
    if spot.enclosing(cst.FunctionDef, read) is not spot.function or spot.enclosing(cst.Lambda, read) is not None:
        return False
    if isinstance(above, cst.BinaryOperation | cst.Comparison | cst.ComparisonTarget | cst.UnaryOperation):
        return True
    if isinstance(above, cst.Attribute):
        call = spot.parent(above)
        if isinstance(call, cst.Call) and call.func is above:
            return makes_new(spot, call) or isinstance(spot.parent(call), cst.Expr)
        return above.attr.value in _ONLY_LOOKED_AT
    if isinstance(above, cst.Subscript) and above.value is read:
        stored = isinstance(spot.parent(above), cst.AssignTarget | cst.AugAssign)
        return stored or all(isinstance(one.slice, cst.Index) and _copies(spot, one.slice.value) for one in above.slice)
    if isinstance(above, cst.Arg):
        call = spot.parent(above)
        return isinstance(call, cst.Call) and operator_of(spot, call) is not None and makes_new(spot, call)
    return False


def _copies(spot: RewriteContext, index: cst.BaseExpression) -> bool:
    """Whether an index picks elements into a new tensor, where a number or slice gives a view."""
    fact = spot.fact(index)
    return fact.is_tensor and (fact.zero_dim is False or fact.dtype == "bool")
