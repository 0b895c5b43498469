"""``not t``, ``a and b``, ``a or b``, ``-1 < t < 1`` on tensors → ``~t``, ``a & b``, ``a | b``, two comparisons.

The result stays a tensor in the graph.  ``a and b`` on two bool tensors with a single element returns one of them,
which has the value of ``a & b``; ``not`` returns a Python bool, and ``and`` on other tensors an operand, so these
differ.  In an assert, a failure is a RuntimeError in compiled code.
"""

from __future__ import annotations

from itertools import pairwise

import libcst as cst

from breakscan.fix.support.context import RewriteContext
from breakscan.fix.support.difference import Effect, differs
from breakscan.fix.support.edit import Declined, Edit
from breakscan.fix.support.tensor_test import AS_TENSOR, asks_tensor, edit_of_assert, is_chain, operands, tensor_test

_OWN_TENSOR = (cst.Call, cst.Comparison, cst.BinaryOperation, cst.UnaryOperation, cst.BooleanOperation)


def rewrite(context: RewriteContext) -> Edit:
    """The tensor operator instead of Python's."""
    assertion = context.enclosing(cst.Assert)
    if assertion is not None:
        return edit_of_assert(context, assertion)
    whole = _whole(context)
    if _is_asked(context, whole):
        raise Declined("Python tests the truth of the result, which also breaks the graph: use `torch.where`")
    for one in _leaves(whole):
        fact = context.fact(one)
        if not asks_tensor(context, one):
            raise Declined(f"`{context.code(one)}` is not known to be a tensor")
        if not isinstance(whole, cst.UnaryOperation) and fact.kind == "tensor" and fact.dtype != "bool":
            raise Declined(f"`{context.code(one)}` is not known to be a bool tensor, and may itself be the result")
        if fact.kind == "tensor" and not fact.zero_dim:
            raise Declined(f"`{context.code(one)}` is not known to have a single element")
    check = tensor_test(context, whole)
    if check.when:
        raise Declined("if the shapes differ, the result is a Python bool")
    node = check.tensor
    made = node.with_changes(
        lpar=[one.deep_clone() for one in whole.lpar], rpar=[one.deep_clone() for one in whole.rpar]
    )
    differences = []
    differences += check.differences()
    if _has_not(whole) or any(_compares_numbers(context, one) for one in _leaves(whole)):
        differences.append(AS_TENSOR)
    elif not all(isinstance(one, _OWN_TENSOR) for one in _leaves(whole)):
        differences.append(differs("the result is a new tensor, not one of the operands", Effect.STORAGE))
    return Edit({whole: made}, differences)


def _compares_numbers(context: RewriteContext, node: cst.BaseExpression) -> bool:
    """True if a chain compares two values that are no tensors, so that the result may be a Python bool."""
    if not is_chain(context, node):
        return False
    chain = cst.ensure_type(node, cst.Comparison)
    values = [chain.left, *(one.comparator for one in chain.comparisons)]
    return any(not any(context.fact(one).is_tensor for one in pair) for pair in pairwise(values))


def _whole(context: RewriteContext) -> cst.BaseExpression:
    """The outermost expression of ``and``, ``or``, ``not`` and chains that the site is part of."""
    whole = context.node
    if not isinstance(whole, cst.BaseExpression):
        raise Declined("this is not an expression")
    for above in context.around():
        is_not = isinstance(above, cst.UnaryOperation) and isinstance(above.operator, cst.Not)
        if not isinstance(above, cst.BaseExpression) or not (isinstance(above, cst.BooleanOperation) or is_not):
            break
        whole = above
    return whole


def _is_asked(context: RewriteContext, node: cst.BaseExpression) -> bool:
    above = context.parent(node)
    return (
        (isinstance(above, cst.If | cst.While | cst.IfExp) and above.test is node)
        or isinstance(above, cst.CompIf)
        or (isinstance(above, cst.Arg) and _is_bool(context.parent(above)))
    )


def _is_bool(node: cst.CSTNode | None) -> bool:
    return isinstance(node, cst.Call) and isinstance(node.func, cst.Name) and node.func.value in ("bool", "int")


def _leaves(node: cst.BaseExpression) -> list[cst.BaseExpression]:
    if isinstance(node, cst.BooleanOperation):
        return [leaf for one in operands(node) for leaf in _leaves(one)]
    if isinstance(node, cst.UnaryOperation) and isinstance(node.operator, cst.Not):
        return _leaves(node.expression)
    return [node]


def _has_not(node: cst.BaseExpression) -> bool:
    if isinstance(node, cst.BooleanOperation):
        return any(_has_not(one) for one in operands(node))
    return isinstance(node, cst.UnaryOperation) and isinstance(node.operator, cst.Not)
