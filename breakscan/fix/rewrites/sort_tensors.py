"""``a, b = sorted([...])`` of tensors with a single element → ``torch.stack([...]).sort().values``.

The same values in the same order, as views of one tensor.  Gradients flow through both.
"""

from __future__ import annotations

import libcst as cst

from breakscan.fix.support.build import call, copied, expression
from breakscan.fix.support.context import RewriteContext
from breakscan.fix.support.difference import Effect, differs
from breakscan.fix.support.edit import Declined, Edit, OtherForm


def rewrite(context: RewriteContext) -> Edit:
    """The tensors stacked and sorted in the graph, if they are unpacked or iterated over."""
    node = context.node
    if not isinstance(node, cst.Call) or context.dotted(node.func) != "sorted" or not node.args:
        raise OtherForm("this is not a call of `sorted`")
    values = node.args[0].value
    if not isinstance(values, cst.List | cst.Tuple) or not values.elements:
        raise Declined(f"`{context.code(values)}` is not a list of known length")
    elements = [one.value for one in values.elements]
    facts = [context.fact(one) for one in elements]
    for one, fact in zip(elements, facts, strict=True):
        if not fact.is_tensor or not fact.zero_dim:
            raise Declined(f"`{context.code(one)}` is not known to be a tensor with a single element")
    if any(fact.dtype is None or fact.dtype != facts[0].dtype for fact in facts):
        raise Declined("the tensors are not known to have the same dtype")
    descending = _descending(context, node)
    above = context.parent(node)
    if not (_is_unpacked(above) or (isinstance(above, cst.For) and above.iter is node)):
        raise Declined("the sorted list is stored, and may be used as a list")
    stacked = call(context.imported("torch.stack"), cst.List([cst.Element(copied(one)) for one in elements]))
    named = {"descending": expression("True")} if descending else {}
    order = call(cst.Attribute(stacked, cst.Name("sort")), **named)
    # Python may leave a NaN where it is, and only the class of the dtype is known, not its precision.
    said = "NaN values are sorted to the end, and all tensors must have the same precision"
    memory = "the results are parts of one new tensor, not the tensors themselves"
    differences = [differs(said, Effect.VALUES, Effect.DTYPES), differs(memory, Effect.STORAGE)]
    return Edit({node: cst.Attribute(order, cst.Name("values"))}, differences)


def _descending(context: RewriteContext, node: cst.Call) -> bool:
    found = False
    for arg in node.args[1:]:
        if arg.keyword is None or arg.keyword.value != "reverse":
            raise Declined(f"`{context.code(arg)}` controls the order")
        if not isinstance(arg.value, cst.Name) or arg.value.value not in ("True", "False"):
            raise Declined(f"`{context.code(arg.value)}` controls the direction")
        found = arg.value.value == "True"
    return found


def _is_unpacked(node: cst.CSTNode | None) -> bool:
    return isinstance(node, cst.Assign) and all(
        isinstance(target.target, cst.Tuple | cst.List) for target in node.targets
    )
