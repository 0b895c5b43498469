"""``x[flag] = 0.0`` with a 0-d bool tensor → ``x.masked_fill_(flag, 0.0)``.

Either all of ``x`` is set, or nothing.  As an index, the flag is read on the host; ``masked_fill_`` takes it as a mask
that is broadcast to the tensor.
"""

from __future__ import annotations

import libcst as cst

from breakscan.fix.support import build
from breakscan.fix.support.context import RewriteContext
from breakscan.fix.support.devices import on_one_device
from breakscan.fix.support.difference import Effect, ShowsOnly, assumes, differs
from breakscan.fix.support.edit import Declined, Edit, OtherForm
from breakscan.fix.support.masked import bool_needed

LARGEST_HALF = 65504
LARGEST_INT8 = 127


def rewrite(context: RewriteContext) -> Edit:
    """The fill with the flag as its mask."""
    node = context.node
    if not isinstance(node, cst.Subscript) or len(node.slice) != 1 or not isinstance(node.slice[0].slice, cst.Index):
        raise Declined("the flag is one of several indices")
    flag, owner = node.slice[0].slice.value, node.value
    if context.fact(flag).dtype != "bool":
        raise Declined(f"`{context.code(flag)}` is not known to be a bool tensor")
    if not context.fact(owner).is_tensor:
        raise Declined(f"`{context.code(owner)}` is not known to be a tensor")
    assignment = context.enclosing(cst.Assign)
    if assignment is None or len(assignment.targets) != 1 or assignment.targets[0].target is not node:
        raise OtherForm("this is not an assignment with a bool index")
    value = assignment.value
    number = value.expression if isinstance(value, cst.UnaryOperation) else value
    exact = isinstance(number, cst.Integer) or (
        isinstance(number, cst.Float) and context.fact(owner).dtype == "float" and context.fact(owner).certain
    )
    if not exact:
        raise Declined(
            f"`{context.code(value)}` may not fit the dtype of `{context.code(owner)}`, or may not be a single number"
        )
    differences = bool_needed(context, flag)
    if not context.fact(owner).certain:
        differences.append(assumes(f"`{context.code(owner)}` is taken to be a tensor", only=ShowsOnly.NO_TENSOR))
    if not on_one_device(context.fact(owner), context.fact(flag)):
        # An index may come from the CPU, a mask may not.
        differences.append(
            assumes(f"`{context.code(flag)}` must be on the device of `{context.code(owner)}`", only=ShowsOnly.DEVICES)
        )
    if not _fits(context, owner, number, isinstance(value, cst.UnaryOperation)):
        said = f"it raises if the dtype of `{context.code(owner)}` cannot represent {context.code(value)}"
        differences.append(differs(said, Effect.RAISES))
    return Edit({assignment: cst.Expr(build.method(owner, "masked_fill_", flag, value))}, differences)


def _fits(context: RewriteContext, owner: cst.BaseExpression, number: cst.BaseExpression, signed: bool) -> bool:
    """Whether every dtype that the tensor may have can represent a number."""
    assert isinstance(number, cst.Integer | cst.Float)
    value, dtype = number.evaluated_value, context.fact(owner).dtype
    if dtype == "float":
        return bool(value <= LARGEST_HALF)
    return not signed and bool(value <= (LARGEST_INT8 if dtype == "int" else 1))
