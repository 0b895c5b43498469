"""Whether a name holds a tensor that nothing else shares: then it may be bound anew instead of changed in place."""

from __future__ import annotations

import libcst as cst
import libcst.matchers as m

from breakscan.rewrite_support.assignments import origin
from breakscan.rewrite_support.context import RewriteContext
from breakscan.rewrite_support.purity import called
from breakscan.rewrite_support.tensor_dims import BROADCASTS, KEEPS

_MAY_BE_THE_SAME = frozenset(
    {
        *("bfloat16", "bool", "contiguous", "copy_", "clamp_", "cpu", "cuda", "detach", "double", "fill_", "float"),
        *("half", "int", "long", "masked_fill_", "movedim", "permute", "requires_grad_", "short", "swapaxes", "to"),
        *("transpose", "type", "zero_"),
    }
)
_MAKES = frozenset(
    {"empty", "full", "new_empty", "new_full", "new_ones", "new_zeros", "ones", "rand", "randn", "zeros"}
)
_NEW = ((KEEPS | BROADCASTS) - _MAY_BE_THE_SAME) | _MAKES
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
    if isinstance(value, cst.BinaryOperation | cst.Comparison):
        return spot.fact(value).is_tensor
    if not isinstance(value, cst.Call):
        return False
    function, method = called(spot, value)
    name = (method or function or "").rpartition(".")[2]
    known = method is not None or (function or "").startswith("torch.")
    return known and name in _NEW and not any(_is_in_place(arg) for arg in value.args)


def _is_in_place(arg: cst.Arg) -> bool:
    return m.matches(arg, m.Arg(keyword=m.Name("out") | m.Name("inplace")) | m.Arg(value=m.Name("True")))


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
            return above.attr.value in _NEW - _MAKES or isinstance(spot.parent(call), cst.Expr)
        return above.attr.value in _ONLY_LOOKED_AT
    if isinstance(above, cst.Subscript) and above.value is read:
        stored = isinstance(spot.parent(above), cst.AssignTarget | cst.AugAssign)
        return stored or all(isinstance(one.slice, cst.Index) and _copies(spot, one.slice.value) for one in above.slice)
    if isinstance(above, cst.Arg):
        call = spot.parent(above)
        if isinstance(call, cst.Arg | cst.Call) and isinstance(call, cst.Call):
            function, _ = called(spot, call)
            return (function or "").startswith("torch.") and (function or "").rpartition(".")[2] in _NEW
    return False


def _copies(spot: RewriteContext, index: cst.BaseExpression) -> bool:
    """Whether an index picks elements into a new tensor, where a number or slice gives a view."""
    fact = spot.fact(index)
    return fact.is_tensor and (fact.zero_dim is False or fact.dtype == "bool")
