"""``y.data = new`` → ``y.data.copy_(new)``.

The assignment replaces the storage of the tensor, the copy writes to the existing one.  Autograd records neither.
"""

from __future__ import annotations

import libcst as cst

from breakscan.fix.support import matchers as m
from breakscan.fix.support.build import method
from breakscan.fix.support.context import RewriteContext
from breakscan.fix.support.difference import Effect, differs
from breakscan.fix.support.edit import Declined, Edit


def rewrite(context: RewriteContext) -> Edit:
    """The new values, copied into the tensor."""
    statement = context.line().body[0]
    if not m.matches(statement, m.Assign([m.AssignTarget(m.Attribute(attr=m.Name("data")))])):
        raise Declined("the statement assigns more than `.data`")
    assign = cst.ensure_type(statement, cst.Assign)
    data = assign.targets[0].target
    tensor = cst.ensure_type(data, cst.Attribute).value
    if not context.fact(assign.value).is_tensor:
        raise Declined(f"`{context.code(assign.value)}` is not known to be a tensor")
    old, new = context.fact(tensor).dtype, context.fact(assign.value).dtype
    if old is not None and new is not None and old != new:
        raise Declined("the new values have a different dtype")
    made = cst.Expr(method(data, "copy_", assign.value))
    said = "the tensor keeps its shape, dtype and memory: the new values are copied into it"
    return Edit({statement: made}, [differs(said, Effect.SHAPES, Effect.DTYPES, Effect.STORAGE, Effect.RAISES)])
