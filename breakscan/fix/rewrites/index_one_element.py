"""``x[t]`` → ``x[t[None]].squeeze(0)``, and ``x[t] = v`` → ``x[t[None]] = v``, with a 0-d integer tensor ``t``.

An index with a dimension is applied in the graph, while a 0-d one is first read into Python.  The elements are the
same, also for negative indices.  The result is a copy, not a view, so it is safe only if no code can distinguish them;
an index out of range is still an IndexError on the CPU, but a device-side assert on a GPU.
"""

from __future__ import annotations

import libcst as cst

from breakscan.fix.support.context import RewriteContext
from breakscan.fix.support.edit import Declined, Edit, OtherForm
from breakscan.fix.support.one_element import element_edit, is_no_mask


def rewrite(context: RewriteContext) -> Edit:
    """The index with a dimension, or the masked fill."""
    node, index = _index(context)
    if not context.fact(node.value).is_tensor:
        raise Declined(f"`{context.code(node.value)}` is not known to be a tensor")
    if context.fact(index).dtype == "bool":
        raise OtherForm(f"`{context.code(index)}` is a mask")
    if context.fact(index).dtype != "int" and not is_no_mask(context, index):
        raise Declined(f"`{context.code(index)}` may be a mask")
    return element_edit(context, node, index, index, index)


def _index(context: RewriteContext) -> tuple[cst.Subscript, cst.BaseExpression]:
    """The subscript, and its 0-d tensor index that the finding is about."""
    node = context.node if isinstance(context.node, cst.Subscript) else context.enclosing(cst.Subscript)
    if node is None:
        raise OtherForm("this is not an index")
    indices = [element.slice.value for element in node.slice if isinstance(element.slice, cst.Index)]
    tensors = [one for one in indices if context.fact(one).is_tensor and context.fact(one).zero_dim]
    if len(tensors) != 1:
        raise Declined("it is not known which index is a 0-d tensor" if not tensors else "two indices are tensors")
    return node, tensors[0]
