"""``t.item()``, ``float(t)``, ``int(t)`` and ``bool(t)`` → the 0-d tensor, if only tensor operations use the number.

With a tensor that has dimensions, a 0-d tensor behaves like a number: it does not change the dtype within a category.
``.detach()`` stops the gradient, as the number did.  It is safe if the number is only combined with tensors that are
computed from the same tensor, so that dtype and device are the same.  Every use is checked: if one takes a Python
number (a size, a branch, a list index, other code), nothing is changed.  As an index, the tensor gets a dimension
(``x[t[None]].squeeze(0)``).
"""

from __future__ import annotations

import libcst as cst

from breakscan.fix.support.build import method, operand
from breakscan.fix.support.called import only_argument
from breakscan.fix.support.context import RewriteContext
from breakscan.fix.support.difference import Difference, Effect, ShowsOnly, assumes, differs
from breakscan.fix.support.edit import Declined, Edit
from breakscan.fix.support.number_uses import Uses
from breakscan.fix.support.one_element import element_edit
from breakscan.fix.support.one_number import must_be_tensor, must_have_no_dimension, without_gradient

_MOVED = frozenset({"cpu", "detach"})
_CONVERSIONS = frozenset({"bool", "float", "int"})


def rewrite(context: RewriteContext) -> Edit:
    """The 0-d tensor instead of the number."""
    node, tensor, conversions = _read(context)
    must_be_tensor(context, tensor)
    made, dtype, differences = _converted(context, tensor, conversions)
    above = context.parent(node)
    if isinstance(above, cst.Index) and isinstance(element := context.parent(above), cst.SubscriptElement):
        subscript = context.parent(element)
        if isinstance(subscript, cst.Subscript):
            if dtype != "int":
                raise Declined(f"`{context.code(node)}` is not known to be an integer")
            if not context.fact(subscript.value).is_tensor:
                raise Declined(
                    f"`{context.code(subscript.value)}` is not known to be a tensor, and may need a Python number"
                )
            must_have_no_dimension(context, tensor)
            return element_edit(context, subscript, node, made, tensor, differences)
    uses = Uses(context, tensor, dtype, context.code(tensor))
    uses.note(*differences)
    uses.follow(node)
    must_have_no_dimension(context, tensor)
    if uses.is_kept and not uses.is_new(tensor):
        made = method(made, "clone")
    if isinstance(above, cst.Comparison | cst.ComparisonTarget) and not conversions:
        made = tensor  # No gradient flows through a comparison.
    if isinstance(above, cst.BinaryOperation | cst.UnaryOperation | cst.Comparison | cst.ComparisonTarget):
        made = operand(made)
    return Edit({node: made}, list(uses.differences))


def _read(context: RewriteContext) -> tuple[cst.Call, cst.BaseExpression, list[str]]:
    """The outermost conversion at the site, the tensor, and the conversions from the inside out."""
    node = context.node
    if not isinstance(node, cst.Call):
        raise Declined("this is not a conversion")
    if isinstance(node.func, cst.Attribute) and node.func.attr.value == "item" and not node.args:
        tensor: cst.BaseExpression = node.func.value
        conversions: list[str] = []
    elif (
        isinstance(node.func, cst.Name)
        and node.func.value in _CONVERSIONS
        and (given := only_argument(node)) is not None
    ):
        tensor, conversions = given, [node.func.value]
    else:
        raise Declined(f"`{context.code(node.func)}` is not called with one tensor")
    outer = node
    while (call := _conversion_around(context, outer)) is not None:
        outer = call
        conversions.append(cst.ensure_type(call.func, cst.Name).value)
    while isinstance(tensor, cst.Call) and isinstance(tensor.func, cst.Attribute) and not tensor.args:
        if tensor.func.attr.value not in _MOVED or context.method(tensor) is None:
            break
        tensor = tensor.func.value
    return outer, tensor, conversions


def _conversion_around(context: RewriteContext, node: cst.Call) -> cst.Call | None:
    arg = context.parent(node)
    call = context.parent(arg) if isinstance(arg, cst.Arg) else None
    if isinstance(call, cst.Call) and isinstance(call.func, cst.Name) and len(call.args) == 1:
        return call if call.func.value in _CONVERSIONS else None
    return None


def _converted(
    context: RewriteContext, tensor: cst.BaseExpression, conversions: list[str]
) -> tuple[cst.BaseExpression, str | None, list[Difference]]:
    """The tensor that replaces the number, its dtype, and the differences."""
    fact = context.fact(tensor)
    differences = (
        []
        if fact.certain
        else [assumes(f"`{context.code(tensor)}` is assumed to be a tensor", only=ShowsOnly.NO_TENSOR)]
    )
    dtype = fact.dtype
    made = without_gradient(context, tensor)
    for one in conversions:
        if one == dtype:
            continue
        if dtype is None:
            raise Declined(
                f"`{one}()` would change the dtype of `{context.code(tensor)}`, "
                "which is not known: convert the tensor instead"
            )
        if one == "bool":
            made = cst.Comparison(operand(made), [cst.ComparisonTarget(cst.NotEqual(), cst.Integer("0"))])
        else:
            if (dtype, one) == ("float", "int"):
                made = tensor
                said = "`int()` of NaN or infinity no longer raises"
                differences.append(differs(said, Effect.NO_LONGER_RAISES, Effect.VALUES))
            made = method(made, "long" if one == "int" else "float")
        dtype = one
    return made, dtype, differences
