"""``x[flag] = 0.0`` with a 0-d bool tensor → ``x.masked_fill_(flag, 0.0)``.

All of ``x`` is set, or nothing.  As an index, the flag is read as a number of the program's; ``masked_fill_`` takes it
as a mask that is spread over the tensor.
"""

from __future__ import annotations

import libcst as cst

from breakscan.rewrite_support import build
from breakscan.rewrite_support.context import RewriteContext
from breakscan.rewrite_support.edit import Declined, Edit, OtherForm
from breakscan.rewrite_support.masked import is_bool


def rewrite(spot: RewriteContext) -> Edit:
    """The fill under a flag."""
    node = spot.node
    if not isinstance(node, cst.Subscript) or len(node.slice) != 1 or not isinstance(node.slice[0].slice, cst.Index):
        raise Declined("the flag is one index of several")
    flag, owner = node.slice[0].slice.value, node.value
    if spot.fact(flag).dtype != "bool":
        raise Declined(f"`{spot.code(flag)}` is not known to be a bool tensor")
    if not (spot.fact(owner).is_tensor and spot.fact(owner).certain):
        raise Declined(f"`{spot.code(owner)}` is not known to be a tensor")
    assignment = spot.enclosing(cst.Assign)
    if assignment is None or len(assignment.targets) != 1 or assignment.targets[0].target is not node:
        raise OtherForm("it is no assignment under a flag")
    value = assignment.value
    number = value.expression if isinstance(value, cst.UnaryOperation) else value
    exact = isinstance(number, cst.Integer) or (
        isinstance(number, cst.Float) and spot.fact(owner).dtype == "float" and spot.fact(owner).certain
    )
    if not exact:
        raise Declined(f"`{spot.code(value)}` may not fit the dtype of `{spot.code(owner)}`, or not be a single number")
    difference = None if is_bool(spot, flag) else f"`{spot.code(flag)}` must be a bool tensor"
    return Edit({assignment: cst.Expr(build.method(owner, "masked_fill_", flag, value))}, difference)
