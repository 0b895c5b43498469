"""``pow(t, n)`` → ``t**n``.

The builtin calls the same method as the operator, so the only change is that Dynamo supports the operator.  There is no
operator with a third argument."""

import libcst as cst

from breakscan.fix.support.build import operand
from breakscan.fix.support.context import Declined, Edit, OtherForm, RewriteContext
from breakscan.fix.support.operators import is_builtin

_SHORT = cst.Name | cst.Attribute | cst.BaseNumber


def rewrite(context: RewriteContext) -> Edit:
    """The power with the operator, spaced as by formatters: no spaces around ``**`` between names and numbers."""
    node = context.node
    if not isinstance(node, cst.Call):
        raise OtherForm("this is not a call of `pow`")
    if isinstance(node.func, cst.Name) and not is_builtin(context, node.func.value, node):
        raise Declined(f"`{node.func.value}` may have another meaning in this file")
    if len(node.args) != 2 or any(arg.star or arg.keyword is not None for arg in node.args):
        raise Declined("a base and an exponent alone must be passed, and by position")
    base, exponent = (arg.value for arg in node.args)
    space = cst.SimpleWhitespace("" if isinstance(base, _SHORT) and isinstance(exponent, _SHORT) else " ")
    made: cst.BaseExpression = cst.BinaryOperation(operand(base), cst.Power(space, space), operand(exponent))
    above = context.parent(node)
    binds_closer = isinstance(above, cst.BinaryOperation) and isinstance(above.operator, cst.Power)
    if binds_closer or isinstance(above, cst.Attribute | cst.Subscript | cst.Await | cst.Call) or node.lpar:
        made = made.with_changes(lpar=[cst.LeftParen()], rpar=[cst.RightParen()])
    return Edit({node: made})
