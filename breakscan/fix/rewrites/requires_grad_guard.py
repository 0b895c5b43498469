"""``x.requires_grad = True`` → the same under ``if not torch.compiler.is_compiling():``.

Code that makes a tensor require a gradient in the middle of a forward pass serves reentrant checkpointing, which needs
this for its inputs.  In compiled code, the gradients of the parameters are the same without it.
"""

from __future__ import annotations

import libcst as cst

from breakscan.fix.support import matchers as m
from breakscan.fix.support.assignments import is_read
from breakscan.fix.support.compiling import and_not_compiling, guarded
from breakscan.fix.support.context import RewriteContext
from breakscan.fix.support.difference import Effect, differs
from breakscan.fix.support.edit import Declined, Edit
from breakscan.fix.support.names import written
from breakscan.fix.support.walking import findall, nodes_named

DIFFERENCE = differs("in compiled code, the tensor is not set to require a gradient", Effect.GRADIENTS)


def rewrite(context: RewriteContext) -> Edit:
    """The statement under a guard, which is added to the test of an ``if`` that contains only this statement."""
    line = context.line()
    target = _target(line.body[0])
    if not isinstance(target, cst.Name) or target.value not in written(context.function.body):
        raise Declined(
            f"`{context.code(target)}` is visible outside the function: set `requires_grad` before the compiled call"
        )
    for one in findall(context.function, m.Attribute()):
        if cst.ensure_type(one, cst.Attribute).attr.value in ("grad", "backward", "retain_grad", "register_hook"):
            raise Declined("the function computes gradients itself: use torch.func.grad, which stays in the graph")
    if (kept := _kept(context, line, target)) is not None:
        raise Declined(f"`{kept}` keeps the tensor, for gradients that other code computes: compile only the rest")
    block = context.parent(line)
    above = context.parent(block) if block is not None else None
    if (
        isinstance(above, cst.If)
        and above.orelse is None
        and block is above.body
        and len(context.siblings(line)[0]) == 1
    ):
        return Edit({above.test: and_not_compiling(context, above.test, first=False)}, [DIFFERENCE])
    return Edit({line: guarded(context, [line])}, [DIFFERENCE])


def _kept(context: RewriteContext, line: cst.SimpleStatementLine, target: cst.Name) -> str | None:
    """The statement that stores or returns the tensor itself, not what is computed from it."""
    own = [one for one in nodes_named(context.function, target.value) if context.tree.holds(one)]
    later = [one for one in own if context.tree.span(one) > context.tree.span(line)]
    is_rebound = any(not is_read(context, one) for one in later)
    for one in later:
        node: cst.CSTNode = one
        above = context.parent(node)
        while isinstance(above, cst.BaseElement | cst.BaseDictElement | cst.Tuple | cst.List | cst.Dict | cst.Set):
            node, above = above, context.parent(above)
        if isinstance(above, cst.Return | cst.Yield) and not is_rebound:
            return context.code(above)
        if isinstance(above, cst.Assign) and above.value is node and is_read(context, one):
            return context.code(above)
    return None


def _target(statement: cst.BaseSmallStatement) -> cst.BaseExpression:
    """The tensor that is made to require a gradient."""
    if m.matches(statement, m.Assign([m.AssignTarget(m.Attribute(attr=m.Name("requires_grad")))])):
        assign = cst.ensure_type(statement, cst.Assign)
        if m.matches(assign.value, m.Name("True")):
            return cst.ensure_type(assign.targets[0].target, cst.Attribute).value
    if m.matches(statement, m.Expr(m.Call(m.Attribute(attr=m.Name("requires_grad_")), []))):
        call = cst.ensure_type(cst.ensure_type(statement, cst.Expr).value, cst.Call)
        return cst.ensure_type(call.func, cst.Attribute).value
    raise Declined("the statement does more than set `requires_grad`")
