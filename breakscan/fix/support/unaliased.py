"""Whether a tensor has no aliases besides one name, so that the name can be rebound instead of changed in place."""

from __future__ import annotations

import libcst as cst

from breakscan.fix.support import matchers as m
from breakscan.fix.support.assignments import origin
from breakscan.fix.support.called import called
from breakscan.fix.support.context import RewriteContext
from breakscan.fix.support.operators import cuts_gradient, makes_new, operator_of
from breakscan.fix.support.walking import findall, nodes_named
from breakscan.rulebook.torch_facts.not_measured import KEEPS_NO_RESULT, ONLY_LOOKED_AT, SHOWS_THE_MEMORY

_SHOWS_THE_OBJECT = m.Attribute(attr=m.Name(m.MatchIfTrue(({"_version", *SHOWS_THE_MEMORY}).__contains__)))
"""What tells a tensor that was changed in place from a new one of the same name."""


def is_unshared(context: RewriteContext, name: cst.Name) -> bool:
    """Whether a name holds, at this read, a new tensor that cannot be reached in any other way."""
    found = origin(context, name)
    if found.value is None or found.anchor is None or not _makes_new(context, found.value):
        return False
    if findall(context.tree.module, _SHOWS_THE_OBJECT):
        return False
    return all(_is_harmless(context, one) for one in _reads_before(context, name))


def may_be_saved(context: RewriteContext, name: cst.Name) -> bool:
    """Whether autograd may have saved the tensor that a name holds, at this read, for a backward pass."""
    made = origin(context, name).value
    if made is None or not _keeps_no_result(context, made):
        return True
    return any(not _saves_nothing(context, one) for one in _reads_before(context, name))


def _keeps_no_result(context: RewriteContext, node: cst.BaseExpression) -> bool:
    """Whether the operation that makes a tensor does not keep it for its backward pass."""
    if isinstance(node, cst.BinaryOperation):
        return not isinstance(node.operator, cst.Power) or isinstance(node.right, cst.BaseNumber)
    if isinstance(node, cst.UnaryOperation | cst.Comparison | cst.Subscript):
        return True
    if not isinstance(node, cst.Call):
        return False
    function, method = called(context, node)
    return cuts_gradient(context, node) or (method or (function or "").rpartition(".")[2]) in KEEPS_NO_RESULT


def _reads_before(context: RewriteContext, name: cst.Name) -> list[cst.Name]:
    """The reads between the assignment of a name and this read; in a loop, those of the whole loop."""
    anchor = origin(context, name).anchor
    start = context.tree.span(anchor)[2:] if anchor is not None else (0, 0)
    stop = context.tree.span(context.statement(name))[:2]
    for loop in context.around(name):
        if isinstance(loop, cst.FunctionDef):
            break
        if isinstance(loop, cst.For | cst.While) and context.tree.span(loop)[:2] >= start:
            stop = max(stop, context.tree.span(loop)[2:])
    reads = [one for one in nodes_named(context.function, name.value) if context.tree.holds(one)]
    return [one for one in reads if one is not name and start <= context.tree.span(one)[:2] < stop]


def _saves_nothing(context: RewriteContext, read: cst.Name) -> bool:
    above = context.parent(read)
    if isinstance(above, cst.BinaryOperation):
        other = above.right if above.left is read else above.left
        return isinstance(above.operator, cst.Add | cst.Subtract) or isinstance(other, cst.BaseNumber)
    if isinstance(above, cst.Attribute) and (above.attr is read or above.attr.value in ONLY_LOOKED_AT):
        return True
    if isinstance(above, cst.Attribute | cst.Arg):
        call = context.parent(above)
        return isinstance(call, cst.Call) and cuts_gradient(context, call)
    is_inside = isinstance(above, cst.Subscript) and above.value is read
    return is_inside or isinstance(above, cst.Comparison | cst.ComparisonTarget | cst.AssignTarget)


def _makes_new(context: RewriteContext, value: cst.BaseExpression) -> bool:
    facts = context.fact(value).tensor
    return not isinstance(value, cst.Name) and context.fact(value).is_tensor and facts is not None and facts.is_new


def _is_harmless(context: RewriteContext, read: cst.CSTNode) -> bool:
    """Whether a use of a tensor does not create an alias."""
    if isinstance(context.parent(read), cst.Attribute) and context.parent(read).attr is read:  # type: ignore[union-attr]
        return True
    above = context.parent(read)
    if (
        context.enclosing(cst.FunctionDef, read) is not context.function
        or context.enclosing(cst.Lambda, read) is not None
    ):
        return False
    if isinstance(above, cst.BinaryOperation | cst.Comparison | cst.ComparisonTarget | cst.UnaryOperation):
        return True
    if isinstance(above, cst.Attribute):
        call = context.parent(above)
        if isinstance(call, cst.Call) and call.func is above:
            return makes_new(context, call) or isinstance(context.parent(call), cst.Expr)
        return above.attr.value in ONLY_LOOKED_AT
    if isinstance(above, cst.Subscript) and above.value is read:
        stored = isinstance(context.parent(above), cst.AssignTarget | cst.AugAssign)
        return stored or all(
            isinstance(one.slice, cst.Index) and _copies(context, one.slice.value) for one in above.slice
        )
    if isinstance(above, cst.Arg):
        call = context.parent(above)
        return isinstance(call, cst.Call) and operator_of(context, call) is not None and makes_new(context, call)
    return False


def _copies(context: RewriteContext, index: cst.BaseExpression) -> bool:
    """Whether an index copies elements into a new tensor, unlike a number or slice, which gives a view."""
    fact = context.fact(index)
    return fact.is_tensor and (fact.zero_dim is False or fact.dtype == "bool")
