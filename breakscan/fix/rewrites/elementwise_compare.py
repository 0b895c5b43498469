"""``torch.equal(a, b)``, ``torch.allclose(a, b)``, ``v in t`` → ``(a == b).all()`` and the like.

The comparison stays in the graph; its result is a tensor, not a Python bool.  ``torch.equal`` is False for different
shapes, so a comparison of the shapes comes first.  In an assert, a failure is a RuntimeError in compiled code.
"""

from __future__ import annotations

import libcst as cst

from breakscan.fix.support import matchers as m
from breakscan.fix.support.assertions import edit_of_assert
from breakscan.fix.support.build import operand_of_and
from breakscan.fix.support.checks import AS_TENSOR, check_of
from breakscan.fix.support.context import RewriteContext
from breakscan.fix.support.difference import ShowsOnly, assumes
from breakscan.fix.support.edit import Declined, Edit, OtherForm


def rewrite(context: RewriteContext) -> Edit:
    """The elementwise comparison, reduced."""
    assertion = context.enclosing(cst.Assert)
    if assertion is not None:
        return edit_of_assert(context, assertion)
    node = context.node
    if not isinstance(node, cst.Call | cst.Comparison):
        raise OtherForm("this is not a comparison")
    value: cst.BaseExpression = node
    if _is_not(context.parent(node)):
        value = cst.ensure_type(context.parent(node), cst.UnaryOperation)
    above = context.parent(value)
    if isinstance(above, cst.If | cst.While | cst.IfExp | cst.CompIf | cst.BooleanOperation) or _is_not(above):
        raise Declined("Python tests the truth of the result, which also breaks the graph: use `torch.where`")
    if isinstance(above, cst.Arg) and _is_python(context, context.parent(above)):
        raise Declined("the result is used as a Python value")
    if isinstance(above, cst.Expr):
        raise Declined("the result is not used")
    check = check_of(context, value)
    made = check.tensor
    for when in reversed(check.when):
        if when.otherwise:
            raise Declined("if the shapes differ, the result is a Python bool")
        made = cst.BooleanOperation(operand_of_and(when.test), cst.And(), made)
    if isinstance(above, cst.GeneratorExp | cst.ListComp) and isinstance(made, cst.BooleanOperation):
        around = context.parent(context.parent(above) or above)
        if _is_python(context, around):
            raise Declined("Python tests each result, which also breaks the graph")
    if isinstance(above, cst.Return) and _promises_bool(context):
        raise Declined("the function is annotated to return a Python bool")
    made = made.with_changes(
        lpar=[one.deep_clone() for one in value.lpar], rpar=[one.deep_clone() for one in value.rpar]
    )
    if isinstance(made, cst.BooleanOperation) and not isinstance(
        above, cst.Assign | cst.Return | cst.Arg | cst.Element
    ):
        made = made.with_changes(lpar=[cst.LeftParen()], rpar=[cst.RightParen()])
    differences = [AS_TENSOR, *check.differences()]
    if not check.certain:
        differences.append(assumes("both operands must be tensors", only=ShowsOnly.NO_TENSOR))
    return Edit({value: made}, differences)


def _promises_bool(context: RewriteContext) -> bool:
    function = context.enclosing(cst.FunctionDef)
    return function is not None and m.matches(function.returns, m.Annotation(m.Name("bool")))


def _is_not(node: cst.CSTNode | None) -> bool:
    return isinstance(node, cst.UnaryOperation) and isinstance(node.operator, cst.Not)


def _is_python(context: RewriteContext, node: cst.CSTNode | None) -> bool:
    return isinstance(node, cst.Call) and context.dotted(node.func) in ("bool", "int", "float", "any", "all")
