"""Indices of one element: ``x[t]`` with a 0-d integer tensor ``t``, rewritten as an index with a dimension."""

from __future__ import annotations

from collections.abc import Sequence

import libcst as cst

from breakscan.fix.support import matchers as m
from breakscan.fix.support.aliases import Fate, change_behind, fate
from breakscan.fix.support.assignments import defined, origin
from breakscan.fix.support.build import operand
from breakscan.fix.support.called import called
from breakscan.fix.support.context import RewriteContext
from breakscan.fix.support.copies import names_of
from breakscan.fix.support.devices import on_one_device
from breakscan.fix.support.difference import EXCEPTIONS, Difference, Effect, ShowsOnly, assumes, differs
from breakscan.fix.support.edit import Declined, Edit
from breakscan.fix.support.numbers import is_number
from breakscan.fix.support.shapes import rank_of
from breakscan.fix.support.shared_memory import elements_may_share
from breakscan.fix.support.walking import findall

_ARITHMETIC = cst.Add | cst.Subtract | cst.Multiply | cst.FloorDivide | cst.Modulo
_COUNTS = frozenset({"argmax", "argmin", "count_nonzero", "int", "long", "sum"})
OUT_OF_RANGE = differs(
    "on a GPU, an index out of range is a device-side assert instead of an IndexError",
    *EXCEPTIONS,
    only=ShowsOnly.DEVICES,
)


def why_on_other_device(
    context: RewriteContext, owner: cst.BaseExpression, index: cst.BaseExpression
) -> Difference | None:
    """What an index with a dimension needs of devices.  A 0-d one may be anywhere, because its number is read."""
    if on_one_device(context.fact(owner), context.fact(index)):
        return None
    said = f"if `{context.code(index)}` is on a GPU, `{context.code(owner)}` must be there, too"
    return differs(said, Effect.RAISES, only=ShowsOnly.DEVICES)


def element_edit(
    context: RewriteContext,
    node: cst.Subscript,
    index: cst.BaseExpression,
    made: cst.BaseExpression,
    source: cst.BaseExpression,
    differences: Sequence[Difference] = (),
) -> Edit:
    """The edit of a subscript of a tensor in which the 0-d integer tensor ``made`` replaces ``index``.

    ``source`` is the expression of the file with the same number.
    """
    element, dimension = looked_up(context, node, index, made)
    found = [*differences]
    if not context.fact(node.value).certain:
        found.insert(0, assumes(f"`{context.code(node.value)}` is assumed to be a tensor", only=ShowsOnly.NO_TENSOR))
    if len(node.slice) > 1 or not always_in_range(context, node.value, source):
        found.append(OUT_OF_RANGE)
    if (device := why_on_other_device(context, node.value, source)) is not None:
        found.append(device)
    above = context.parent(node)
    if isinstance(above, cst.Element) and context.enclosing(cst.AssignTarget) is not None:
        raise Declined("several targets are assigned at once")
    replacement: cst.BaseExpression = element
    if isinstance(above, cst.AssignTarget) or (isinstance(above, cst.AugAssign) and above.target is node):
        found += _of_store(context, above, dimension)
        found += _of_layout(context, node)
        if isinstance(above, cst.AugAssign) and findall(context.tree.module, m.Attribute(attr=m.Name("_version"))):
            found.append(differs("the version of the tensor counts one change instead of two", Effect.VALUES))
    else:
        found += _of_load(context, node)
        replacement = squeezed(element, dimension)
    return Edit({node: replacement}, list(dict.fromkeys(found)))


def is_no_mask(context: RewriteContext, index: cst.BaseExpression) -> bool:
    """Whether an index cannot be a bool tensor: a sum, or arithmetic with a number."""
    made = defined(context, index)
    if isinstance(made, cst.BinaryOperation) and isinstance(made.operator, _ARITHMETIC):
        return is_number(context, made.left) or is_number(context, made.right)
    return context.method(made) in _COUNTS


def with_dimension(index: cst.BaseExpression) -> cst.BaseExpression:
    """``t[None]`` of a 0-d tensor."""
    none = cst.SubscriptElement(cst.Index(cst.Name("None")))
    return cst.Subscript(operand(index), [none])


def looked_up(
    context: RewriteContext, node: cst.Subscript, index: cst.BaseExpression, made: cst.BaseExpression
) -> tuple[cst.Subscript, int]:
    """``x[…, made[None], …]`` for ``x[…, index, …]``, and the additional dimension of the result.

    ``made`` is the 0-d tensor that replaces ``index``.  Declines if the other indices do not show which dimension that
    is.
    """
    position = place(node, index)
    elements = [element.deep_clone() for element in node.slice]
    elements[position] = elements[position].with_changes(slice=cst.Index(with_dimension(made)))
    return cst.Subscript(operand(node.value), elements), _dimension(context, node.slice, position)


def place(node: cst.Subscript, index: cst.BaseExpression) -> int:
    """The position of an expression among the indices of a subscript."""
    for position, element in enumerate(node.slice):
        if isinstance(element.slice, cst.Index) and element.slice.value is index:
            return position
    raise Declined("the tensor is only part of an index")


def _dimension(context: RewriteContext, elements: Sequence[cst.SubscriptElement], position: int) -> int:
    """The dimension of the result that belongs to an index with one element."""
    kinds = [_kind(context, element.slice) for element in elements]
    others = kinds[:position] + kinds[position + 1 :]
    if "other" in others:
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


def squeezed(made: cst.Subscript, dimension: int) -> cst.BaseExpression:
    """``x[…].squeeze(dimension)``."""
    return cst.Call(cst.Attribute(made, cst.Name("squeeze")), [cst.Arg(cst.parse_expression(str(dimension)))])


def always_in_range(context: RewriteContext, owner: cst.BaseExpression, index: cst.BaseExpression) -> bool:
    """Whether an index is the position of the largest or smallest element of the indexed tensor."""
    made = defined(context, index)
    if not isinstance(made, cst.Call):
        return False
    function, method = called(context, made)
    if method in ("argmax", "argmin") and not made.args and isinstance(made.func, cst.Attribute):
        of: cst.BaseExpression = made.func.value
    elif function in ("torch.argmax", "torch.argmin") and len(made.args) == 1:
        of = made.args[0].value
    else:
        return False
    if not isinstance(of, cst.Name) or not isinstance(owner, cst.Name) or of.value != owner.value:
        return False
    return origin(context, of).anchor is origin(context, owner).anchor


def _of_store(context: RewriteContext, above: cst.AssignTarget | cst.AugAssign, dimension: int) -> list[Difference]:
    assign = context.parent(above) if isinstance(above, cst.AssignTarget) else above
    if not isinstance(assign, cst.Assign | cst.AugAssign):
        raise Declined("several targets are assigned at once")
    value = assign.value
    if is_number(context, value):
        return []
    text = context.code(value)
    if dimension and not context.fact(value).zero_dim:
        raise Declined(f"`{text}` would need the dimension that is added to the index")
    stored = isinstance(above, cst.AssignTarget)
    return [assumes(f"`{text}` must have the same dtype as the tensor that it is assigned to")] if stored else []


def _of_layout(context: RewriteContext, node: cst.Subscript) -> list[Difference]:
    """PyTorch refuses to write to a row whose elements share memory, unless an index with a dimension selects it."""
    most = rank_of(context, node.value).most
    if (most is not None and most <= len(node.slice)) or not elements_may_share(context, node.value):
        return []
    said = f"if elements of `{context.code(node.value)}` share memory, as after `expand`, it does not raise"
    return [differs(said, Effect.NO_LONGER_RAISES, Effect.STATE)]


def _of_load(context: RewriteContext, node: cst.Subscript) -> list[Difference]:
    becomes = fate(context, node)
    if becomes is Fate.CHANGED:
        raise Declined(
            f"`{context.code(node)}` is a view through which `{context.code(node.value)}` is changed in place"
        )
    if becomes is Fate.USED:
        return []
    change = change_behind(context, names_of(context, node.value), node)
    if change is not None:
        raise Declined(f"`{context.code(node)}` is a view, and `{change}` changes the tensor that it views")
    copied = differs("a copy is passed on, not a view", Effect.STORAGE)
    return [] if becomes is Fate.HELD else [copied]
