"""Python's ``any([...])`` or ``all([...])`` over tensors → ``torch.stack([...]).any()``.

All elements are computed, while Python stops at the first that decides, and the result is a tensor.  They must be
tensors with a single element, and there must be at least one: an empty list cannot be stacked.
"""

from __future__ import annotations

import libcst as cst

from breakscan.fix.support.assertions import edit_of_assert
from breakscan.fix.support.checks import AS_TENSOR, check_of
from breakscan.fix.support.context import RewriteContext
from breakscan.fix.support.devices import TESTS_APART
from breakscan.fix.support.difference import Effect, differs
from breakscan.fix.support.edit import Declined, Edit, OtherForm


def rewrite(context: RewriteContext) -> Edit:
    """The reduction in the graph."""
    node = context.node
    if not isinstance(node, cst.Call):
        raise OtherForm("this is not a call")
    assertion = context.enclosing(cst.Assert)
    if assertion is not None:
        return edit_of_assert(context, assertion)
    above = context.parent(node)
    whole: cst.BaseExpression = node
    if isinstance(above, cst.UnaryOperation) and isinstance(above.operator, cst.Not):
        whole, above = above, context.parent(above)
    if isinstance(above, cst.If | cst.While | cst.IfExp | cst.CompIf | cst.BooleanOperation | cst.UnaryOperation):
        raise Declined("Python tests the truth of the result, which also breaks the graph: use `torch.where`")
    check = check_of(context, whole)
    all_computed = differs("all elements are computed", Effect.RAISES)
    return Edit({whole: check.tensor}, [all_computed, AS_TENSOR, *([] if check.one_device else [TESTS_APART])])
