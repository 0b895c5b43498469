"""``torch.zeros(n, requires_grad=True)`` → ``torch.zeros(n)``.

For a tensor that does not leave the function, and whose gradient is not used there.
"""

from __future__ import annotations

import libcst as cst

from breakscan.fix.support import matchers as m
from breakscan.fix.support.context import RewriteContext
from breakscan.fix.support.difference import Effect, differs
from breakscan.fix.support.edit import Declined, Edit
from breakscan.fix.support.walking import findall

_ASKS = frozenset({"backward", "grad", "register_hook", "retain_grad", "requires_grad", "is_leaf"})


def rewrite(context: RewriteContext) -> Edit:
    """The call without the flag."""
    node = context.node
    if not isinstance(node, cst.Call):
        raise Declined("the tensor is not created by a call")
    kept = [arg for arg in node.args if arg.keyword is None or arg.keyword.value != "requires_grad"]
    if len(kept) == len(node.args):
        raise Declined("`requires_grad` is not passed by keyword")
    for one in findall(context.function.body, m.Attribute()):
        if cst.ensure_type(one, cst.Attribute).attr.value in _ASKS:
            raise Declined("the function computes a gradient itself: use torch.func.grad, which stays in the graph")
    statement = context.line().body[0]
    if isinstance(statement, cst.Assign) and statement.value is node:
        target = statement.targets[0].target
        if not isinstance(target, cst.Name) or len(statement.targets) > 1:
            raise Declined(f"`{context.code(target)}` outlives the call: make it a parameter in `__init__`")
        if findall(context.function.body, m.Return(value=m.Name(target.value))):
            raise Declined("the tensor is returned: create it before the compiled call")
    elif isinstance(statement, cst.Return) and _is_made_from(statement.value, node):
        raise Declined("the tensor is returned: create it before the compiled call")
    arguments = [arg.deep_clone() for arg in kept]
    if node.args[-1] is not kept[-1]:
        arguments[-1] = arguments[-1].with_changes(comma=node.args[-1].comma)
        arguments[-1] = arguments[-1].with_changes(whitespace_after_arg=node.args[-1].whitespace_after_arg)
    made = node.deep_clone().with_changes(args=arguments)
    said = "results computed from the tensor no longer require a gradient because of it, and asking for one may raise"
    differences = [differs(said, Effect.GRADIENTS, Effect.RAISES)]
    unpacked = any(arg.star == "**" for arg in kept)
    if unpacked or context.fact(node).dtype != "float" or not context.fact(node).certain:
        differences.append(differs("a dtype that cannot require a gradient no longer raises", Effect.NO_LONGER_RAISES))
    if unpacked:
        differences.append(
            differs("`requires_grad` among the `**` arguments no longer raises", Effect.NO_LONGER_RAISES)
        )
    return Edit({node: made}, differences)


def _is_made_from(value: cst.BaseExpression | None, node: cst.Call) -> bool:
    """Whether a value is the result of a call, or of its methods that keep a gradient: ``torch.zeros(3).float()``."""
    while value is not node:
        if isinstance(value, cst.Call) and isinstance(value.func, cst.Attribute):
            if value.func.attr.value == "detach":
                return False
            value = value.func.value
        elif isinstance(value, cst.Subscript | cst.Attribute):
            value = value.value
        else:
            return False
    return True
