"""``x[t]`` → ``x[t[None]].squeeze(0)``, and ``x[t] = v`` → ``x[t[None]] = v``, with a 0-d integer tensor ``t``.

An index with a dimension is applied in the graph, while a 0-d one is first read into Python."""

from collections.abc import Sequence

import libcst as cst

from breakscan.fix.result import EXCEPTIONS, Effect, assumes, differs
from breakscan.fix.support import matchers as m
from breakscan.fix.support.assignments import defined
from breakscan.fix.support.build import operand
from breakscan.fix.support.context import Declined, Edit, OtherForm, RewriteContext
from breakscan.fix.support.operators import is_number

_ARITHMETIC = cst.Add | cst.Subtract | cst.Multiply | cst.FloorDivide | cst.Modulo
_COUNTS = frozenset({"argmax", "argmin", "count_nonzero", "int", "long", "sum"})
LOOKED_UP = differs(
    "the result is a copy, not a view, and on a GPU an index out of range is a device-side assert",
    *(Effect.STORAGE, Effect.STRIDES, *EXCEPTIONS),
)
STORED = differs("on a GPU, an index out of range is a device-side assert", *EXCEPTIONS)


def rewrite(context: RewriteContext) -> Edit:
    """The index with a dimension."""
    node = context.node if isinstance(context.node, cst.Subscript) else context.enclosing(cst.Subscript)
    if node is None:
        raise OtherForm("this is not an index")
    indices = [element.slice.value for element in node.slice if isinstance(element.slice, cst.Index)]
    tensors = [one for one in indices if context.fact(one).is_tensor and context.fact(one).zero_dim]
    if len(tensors) != 1:
        raise Declined("it is not known which index is a 0-d tensor" if not tensors else "two indices are tensors")
    index = tensors[0]
    context.require_tensor(node.value)
    if context.fact(index).dtype == "bool":
        raise OtherForm(f"`{context.code(index)}` is a mask")
    made = defined(context, index)
    counts = context.method(made) in _COUNTS
    if isinstance(made, cst.BinaryOperation) and isinstance(made.operator, _ARITHMETIC):
        counts = is_number(context, made.left) or is_number(context, made.right)
    if context.fact(index).dtype != "int" and not counts:
        raise Declined(f"`{context.code(index)}` may be a mask")
    return element_edit(context, node, index, index)


def element_edit(
    context: RewriteContext, node: cst.Subscript, index: cst.BaseExpression, made: cst.BaseExpression
) -> Edit:
    """The edit of a subscript of a tensor in which the 0-d integer tensor ``made`` replaces ``index``."""
    indices = [one.slice.value if isinstance(one.slice, cst.Index) else None for one in node.slice]
    position = next((at for at, one in enumerate(indices) if one is index), None)
    if position is None:
        raise Declined("the tensor is only part of an index")
    dimension = _dimension(context, node.slice, position)
    elements = [element.deep_clone() for element in node.slice]
    row = cst.Subscript(operand(made), [cst.SubscriptElement(cst.Index(cst.Name("None")))])
    elements[position] = elements[position].with_changes(slice=cst.Index(row))
    element = cst.Subscript(operand(node.value), elements)
    above = context.parent(node)
    if isinstance(above, cst.AssignTarget) or (isinstance(above, cst.AugAssign) and above.target is node):
        assign = context.parent(above) if isinstance(above, cst.AssignTarget) else above
        value = cst.ensure_type(assign, cst.Assign).value if isinstance(above, cst.AssignTarget) else above.value
        if is_number(context, value):
            return Edit({node: element}, [STORED])
        if dimension and not context.fact(value).zero_dim:
            raise Declined(f"`{context.code(value)}` would need the dimension that is added to the index")
        said = f"`{context.code(value)}` must have the dtype of the tensor that it is assigned to"
        return Edit({node: element}, [STORED, assumes(said)])
    if isinstance(above, cst.Attribute) and above.attr.value.endswith("_") and not above.attr.value.endswith("__"):
        code = context.code(node)
        raise Declined(f"`{code}` is a view through which `{context.code(node.value)}` is changed in place")
    squeezed = cst.Call(cst.Attribute(element, cst.Name("squeeze")), [cst.Arg(cst.parse_expression(str(dimension)))])
    return Edit({node: squeezed}, [LOOKED_UP])


def _dimension(context: RewriteContext, elements: Sequence[cst.SubscriptElement], position: int) -> int:
    """The dimension of the result that belongs to an index with one element."""
    kinds = [_kind(context, element.slice) for element in elements]
    if "other" in kinds[:position] + kinds[position + 1 :]:
        raise Declined("the other indices are not known")
    if "ellipsis" in kinds[:position]:
        return -1 - sum(kind in ("slice", "new") for kind in kinds[position + 1 :])
    return sum(kind in ("slice", "new") for kind in kinds[:position])


def _kind(context: RewriteContext, index: cst.BaseSlice) -> str:
    if isinstance(index, cst.Slice):
        return "slice"
    if not isinstance(index, cst.Index) or index.star:
        return "other"
    value = index.value
    if isinstance(value, cst.Ellipsis):
        return "ellipsis"
    if m.matches(value, m.Name("None")):
        return "new"
    if m.matches(value, m.Integer() | m.UnaryOperation(operator=m.Minus(), expression=m.Integer())):
        return "number"
    fact = context.fact(value)
    return "number" if fact.is_number and fact.dtype != "bool" else "other"
