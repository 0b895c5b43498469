"""``x[mask].sum()`` → ``torch.where(mask, x, 0.0).sum()``; a mean is divided by ``mask.sum()``.

Elements outside the mask get a neutral value: zero for a sum, infinity for a minimum or maximum.  ``torch.where`` is
used instead of a product, as NaN times zero is NaN.  The mask must select single elements, not rows, because
``torch.where`` aligns shapes at the last dimension."""

from dataclasses import dataclass, replace

import libcst as cst

from breakscan.fix.result import Difference, Effect, differs
from breakscan.fix.support import build
from breakscan.fix.support import matchers as m
from breakscan.fix.support.context import Declined, Edit, OtherForm, RewriteContext
from breakscan.fix.support.masked import (
    MEAN,
    NAN_GRADIENTS,
    NO_MODULE,
    ROUNDING,
    Leaf,
    Masked,
    conditions,
    filled,
    in_place_of,
    is_scalar,
    leaf_of,
    loss_of,
    masked,
    may_require_gradient,
    name_of_loss,
    refuse_poles,
    whole,
    zero,
)
from breakscan.fix.support.operators import called, flattens, is_builtin, is_conversion, is_elementwise, written_number
from breakscan.fix.support.purity import refuse_breaks_in, refuse_reads_of
from breakscan.rulebook.torch_facts.not_measured import ELEMENTWISE_SETTINGS, OF_CLASSES, WEIGHTED

_DIMENSION = m.Arg(keyword=None) | m.Arg(keyword=m.Name("dim") | m.Name("axis"))
_REDUCTIONS = frozenset({"amax", "amin", "max", "mean", "min", "sum"})


@dataclass(frozen=True, slots=True)
class _Use:
    """A use of selected elements: ``node`` is the reduction ``what`` of ``value``."""

    node: cst.BaseExpression
    value: cst.BaseExpression
    what: str
    args: tuple[cst.Arg, ...] = ()


def rewrite(context: RewriteContext) -> Edit:
    """The reduction over all elements."""
    leaf = leaf_of(context)
    use = _use(context, leaf.node)
    if use.what == "loss":
        return _loss(context, use, leaf)
    found = masked(context, use.value, leaf.mask)
    bends = found.bends and may_require_gradient(context, use.value)
    refuse_poles(context, use.value, found.leaves)
    value = whole(context, use.value, found.leaves)
    if use.what in ("sum", "mean"):
        arguments = _without_only_dimension(use)
        if use.what == "mean" and arguments:
            raise Declined("`mean` changes the dtype or keeps the dimension")
        summed = build.method(filled(context, leaf.mask, value, zero(context, use.value)), "sum")
        made: cst.BaseExpression = summed.with_changes(args=[arg.deep_clone() for arg in arguments])
        if use.what == "mean":
            hits = build.method(leaf.mask, "sum")
            above = context.parent(use.node)
            is_zero = isinstance(above, cst.IfExp) and above.body is use.node and written_number(above.orelse) == 0
            test = context.plain(build.method(leaf.mask, "any"))
            if is_zero and isinstance(above, cst.IfExp) and context.plain(above.test) == test:
                # `x[mask].mean() if mask.any() else 0`
                use = replace(use, node=above)
                hits = cst.Call(cst.Attribute(hits, cst.Name("clamp")), [build.argument(cst.Integer("1"), "min")])
            made = build.binary(made, cst.Divide(), hits)
        hazard = NAN_GRADIENTS if bends else MEAN if use.what == "mean" else ROUNDING
    else:
        if _without_only_dimension(use):
            raise Declined(f"`{use.what}` has additional arguments")
        made, hazard = _extreme(context, use, leaf.mask, value)
    needs = conditions(context, leaf.mask, found.leaves)
    return _edit(context, use, made, [hazard, *needs])


def _edit(context: RewriteContext, use: _Use, made: cst.BaseExpression, differences: list[Difference]) -> Edit:
    refuse_breaks_in(context, use.node, made)
    refuse_reads_of(context, use.node)
    return Edit({use.node: in_place_of(context, use.node, made)}, differences)


# -- how the elements are used --------------------------------------------------------------------------------------


def _use(context: RewriteContext, leaf: cst.BaseExpression) -> _Use:
    """The reduction around selected elements.  Declines if another use needs the elements themselves."""
    node: cst.BaseExpression = leaf
    while True:
        above = context.parent(node)
        if isinstance(above, cst.ComparisonTarget):
            above = context.parent(above)
        if isinstance(above, cst.Attribute) and above.value is node:
            found = _attribute_use(context, node, above)
        elif isinstance(above, cst.Arg):
            found = _argument_use(context, node, above)
        elif isinstance(above, cst.BinaryOperation | cst.UnaryOperation | cst.Comparison):
            found = above
        else:
            raise Declined(_why_needed(context, node, above))
        if isinstance(found, _Use):
            return found
        node = found


def _attribute_use(
    context: RewriteContext, node: cst.BaseExpression, attribute: cst.Attribute
) -> _Use | cst.BaseExpression:
    name, above = attribute.attr.value, context.parent(attribute)
    if isinstance(above, cst.Call) and above.func is attribute:
        if name in _REDUCTIONS:
            return _Use(above, node, name, tuple(above.args))
        reshapes = flattens(context, above) or name in ("view", "reshape")
        if is_elementwise(context, above) or is_conversion(context, above) or reshapes:
            return above
    selected = "the selected elements themselves, whose number depends on values"
    raise Declined(f"`{context.plain(attribute)}` needs {selected}")


def _argument_use(context: RewriteContext, node: cst.BaseExpression, arg: cst.Arg) -> _Use | cst.BaseExpression:
    call = context.parent(arg)
    if not isinstance(call, cst.Call):
        raise Declined("the selected elements are an argument of a class definition")
    function, method = called(context, call)
    package, _, name = (method or function or "").rpartition(".")
    if method is None and package == "torch" and name in _REDUCTIONS and call.args[0] is arg:
        return _Use(call, node, name, tuple(call.args[1:]))
    if name_of_loss(context, call) is not None:
        return _Use(call, call, "loss")
    if is_elementwise(context, call):
        return call
    raise Declined(f"`{context.plain(call.func)}` is called with the selected elements: pass all and the mask")


def _why_needed(context: RewriteContext, node: cst.CSTNode, above: cst.CSTNode | None) -> str:
    if isinstance(above, cst.Return):
        return "the selected elements are returned"
    if isinstance(above, cst.Assign | cst.AnnAssign):
        return "the selected elements are assigned to a name: reduce them where they are selected, `x[mask].sum()`"
    if isinstance(above, cst.Subscript):
        return f"`{context.plain(above)}` needs the selected elements themselves, whose number depends on values"
    return f"`{context.plain(node)}` itself is used, and its size depends on values: use all elements and the mask"


# -- what replaces them ---------------------------------------------------------------------------------------------


def _without_only_dimension(use: _Use) -> list[cst.Arg]:
    """The arguments of a reduction over a vector, without its only dimension."""
    if any(arg.keyword is not None and arg.keyword.value in ("keepdim", "out") for arg in use.args):
        raise Declined(f"`{use.what}` keeps the dimension or writes to a tensor")
    if use.what in ("max", "min") and any(m.matches(arg, _DIMENSION) for arg in use.args):
        raise Declined(f"`{use.what}` returns indices into the selected elements or compares two tensors")
    one = m.Integer("0") | m.UnaryOperation(operator=m.Minus(), expression=m.Integer("1"))
    for arg in use.args:
        if m.matches(arg, _DIMENSION) and not m.matches(arg.value, one):
            raise Declined(f"`{use.what}` reduces a dimension that a vector does not have")
    return [arg for arg in use.args if not m.matches(arg, _DIMENSION)]


def _extreme(
    context: RewriteContext, use: _Use, mask: cst.BaseExpression, value: cst.BaseExpression
) -> tuple[cst.BaseExpression, Difference]:
    fact = context.fact(use.value)
    if not (fact.certain and fact.dtype == "float"):
        raise Declined(f"`{context.plain(use.value)}` is not known to be a float tensor, which can hold infinity")
    if not is_builtin(context, "float", use.node):
        raise Declined("`float` may have another meaning in this file")
    infinity = '"-inf"' if use.what in ("max", "amax") else '"inf"'
    off = build.expression(f"float({infinity})")
    made = build.method(build.method(value, "masked_fill", build.inverted(mask), off), use.what)
    said = f"if the mask selects nothing, the result is {infinity.strip(chr(34))} instead of an error"
    return made, differs(said, Effect.NO_LONGER_RAISES)


def _loss(context: RewriteContext, use: _Use, leaf: Leaf) -> Edit:
    """``F.mse_loss(x[mask], y[mask])``: where the mask is False, both arguments, the loss and its gradient are zero."""
    loss = loss_of(context, cst.ensure_type(use.node, cst.Call))
    if loss.name in OF_CLASSES:
        raise OtherForm(f"`{context.plain(loss.call.func)}` is a loss of classes, not of elements")
    leaves: list[Leaf] = []
    weight: cst.BaseExpression | None = leaf.mask if loss.name == WEIGHTED else None
    arguments: list[cst.Arg] = []
    for arg in loss.sides:
        value, found = _filled_side(context, arg.value, leaf.mask)
        leaves += found.leaves
        arguments.append(build.argument(value, arg.keyword.value if arg.keyword is not None else None))
    for keyword, setting in loss.settings:
        if keyword in ELEMENTWISE_SETTINGS or (keyword == "pos_weight" and is_scalar(context, setting)):
            arguments.append(build.argument(setting, keyword))
        elif keyword == "weight" and loss.module is None and loss.name in (WEIGHTED, "binary_cross_entropy"):
            weight, found = _filled_side(context, setting, leaf.mask)
            leaves += found.leaves
        else:
            raise Declined(f"`{context.plain(loss.call.func)}` has additional arguments")
    if weight is not None:
        arguments.append(build.argument(weight, "weight"))
    arguments.append(build.argument(build.expression('"sum"'), "reduction"))
    is_module = loss.module is not None  # a function computes it with its own reduction
    function = context.imported(f"torch.nn.functional.{loss.name}") if is_module else loss.call.func
    made: cst.BaseExpression = cst.Call(build.operand(function), arguments)
    if loss.reduction != "sum":
        made = build.binary(made, cst.Divide(), build.method(leaf.mask, "sum"))
    hazards = [NAN_GRADIENTS, NO_MODULE] if is_module else [NAN_GRADIENTS]
    return _edit(context, use, made, [*hazards, *conditions(context, leaf.mask, leaves)])


def _filled_side(
    context: RewriteContext, node: cst.BaseExpression, mask: cst.BaseExpression
) -> tuple[cst.BaseExpression, Masked]:
    """An argument of a loss for all elements, with zeros where the mask is False."""
    found = masked(context, node, mask)
    if not found.leaves:
        raise Declined(f"`{context.code(node)}` is not selected by the mask")
    return filled(context, mask, whole(context, node, found.leaves), zero(context, node)), found
