"""``x[mask] = f(y[mask])`` → ``x = torch.where(mask, f(y), x)``, and ``x[mask] += 1`` likewise.

Both write ``f(y)`` where the mask is True and leave the rest of ``x``.  The mask must select single elements, not rows,
because ``torch.where`` aligns shapes at the last dimension.  A tensor that may have aliases is still changed in place,
by ``x.copy_``; only a tensor that was created in the function and has no aliases is rebound.
"""

from __future__ import annotations

from dataclasses import replace

import libcst as cst

from breakscan.fix.support import build
from breakscan.fix.support.assignments import origin
from breakscan.fix.support.breaks import refuse_breaks_in
from breakscan.fix.support.build import AUGMENTED
from breakscan.fix.support.context import RewriteContext
from breakscan.fix.support.difference import Effect, differs
from breakscan.fix.support.dtypes import of_one_dtype
from breakscan.fix.support.edit import Declined, Edit, OtherForm
from breakscan.fix.support.grad_mode import is_switched_by_calls, uncertain_gradient_scope
from breakscan.fix.support.masked import (
    NAN_GRADIENTS,
    Leaf,
    Masked,
    bends_gradients,
    beside,
    conditions,
    filled,
    is_scalar,
    leaf_at,
    leaf_of,
    masked,
    may_require_gradient,
    whole,
)
from breakscan.fix.support.shapes import is_vector
from breakscan.fix.support.shared_memory import elements_may_share, shares_with_index
from breakscan.fix.support.unaliased import is_unshared, may_be_saved
from breakscan.fix.support.wording import plain

_CLASSES: dict[type, str] = {bool: "bool", int: "int", float: "float"}
_OPERATORS: dict[type[cst.BaseAugOp], cst.BaseBinaryOp] = {**AUGMENTED, cst.BitXorAssign: cst.BitXor()}


def rewrite(context: RewriteContext) -> Edit:
    """The assignment with the mask, computed for all elements."""
    leaf = leaf_of(context)
    augmented = context.enclosing(cst.AugAssign)
    if augmented is not None and augmented.target is context.node:
        return _of_augmented(context, augmented, leaf)
    assignment = context.enclosing(cst.Assign)
    if assignment is None:
        raise OtherForm("this is not an assignment to elements that a mask selects")
    return _of_assignment(context, assignment, leaf)


def _of_assignment(context: RewriteContext, small: cst.Assign, leaf: Leaf) -> Edit:
    target = leaf_at(context, small.targets[0].target)
    if target is None or plain(context, target.mask) != plain(context, leaf.mask):
        raise Declined("the selected elements are not assigned with the same mask, as in `y[mask] = x[mask]`")
    if len(small.targets) > 1:
        raise Declined("several targets are assigned at once")
    if not context.fact(target.owner).is_tensor:
        raise Declined(f"`{plain(context, target.owner)}` is not known to be a tensor")
    found = masked(context, small.value, leaf.mask, numbers=True)
    if not any(one.node is leaf.node for one in found.leaves):
        raise Declined("the selected elements are reduced to a single value")
    made = filled(context, leaf.mask, whole(context, small.value, found.leaves), target.owner)
    edit = _edit(context, small, target, found, made, bends_gradients(context, small.value, found))
    if of_one_dtype(context, target.owner, small.value):
        return edit
    # An assignment to elements demands one dtype; `torch.where` finds a common one, and `copy_` converts.
    return _without_error(edit, f"the dtypes of `{plain(context, target.owner)}` and of what is assigned differ")


def _of_augmented(context: RewriteContext, small: cst.AugAssign, leaf: Leaf) -> Edit:
    operator = _OPERATORS.get(type(small.operator))
    if operator is None:
        raise Declined("the operator may raise where the mask is False")
    if context.fact(small.value).is_tensor and not is_scalar(context, small.value):
        found = masked(context, small.value, leaf.mask, numbers=True)
    elif is_scalar(context, small.value):
        found = Masked(leaf.mask)
    else:
        raise Declined(f"`{plain(context, small.value)}` may have as many elements as the mask selects")
    value = beside(leaf.owner, operator, whole(context, small.value, found.leaves))
    made = filled(context, leaf.mask, value, leaf.owner)
    number = is_scalar(context, small.value) and not context.fact(small.value).is_tensor
    linear = isinstance(small.operator, cst.AddAssign | cst.SubtractAssign) or (
        isinstance(small.operator, cst.MultiplyAssign | cst.DivideAssign) and number
    )
    found.bends |= not linear
    found.saves |= not linear
    # An operand of a wider dtype would widen the result, unlike an in-place assignment.
    edit = _edit(context, small, leaf, found, made, bends_gradients(context, leaf.owner, found), rebinds=number)
    if _holds_result(context, small, leaf.owner):
        return edit
    return _without_error(edit, f"the dtype of `{plain(context, leaf.owner)}` cannot hold the result")


def _without_error(edit: Edit, case: str) -> Edit:
    said = differs(f"if {case}, there is no error", Effect.NO_LONGER_RAISES, Effect.DTYPES)
    return replace(edit, differences=[*edit.differences, said])


def _holds_result(context: RewriteContext, small: cst.AugAssign, owner: cst.BaseExpression) -> bool:
    """Whether the dtype of a tensor can hold the result of an in-place operation: no float in integers, for example."""
    own, value = context.fact(owner), context.fact(small.value)
    kind = value.dtype if value.is_tensor else _CLASSES.get(type(value.literal))
    if isinstance(small.operator, cst.DivideAssign):
        kind = "float"
    return own.dtype == "float" or kind == "bool" or own.dtype == kind == "int"


def _edit(
    context: RewriteContext,
    small: cst.Assign | cst.AugAssign,
    target: Leaf,
    found: Masked,
    made: cst.Call,
    bends: bool,
    rebinds: bool = True,
) -> Edit:
    refuse_breaks_in(context, small, made)
    needs = conditions(context, found, target)
    difference = [NAN_GRADIENTS] if bends else []
    is_own = isinstance(target.owner, cst.Name) and is_unshared(context, target.owner)
    if rebinds and isinstance(target.owner, cst.Name) and is_own and not _keeps_gradient(context, target.owner):
        new: cst.BaseSmallStatement = cst.Assign([cst.AssignTarget(build.copied(target.owner))], made)  # type: ignore[arg-type]
        if may_require_gradient(context, target.owner) and may_be_saved(context, target.owner):
            said = f"autograd does not raise if it needs the old value of `{plain(context, target.owner)}`"
            difference.append(differs(said, Effect.GRADIENTS))
        if not _keeps_layout(context, target):
            said = f"the strides may be those of `{plain(context, target.mask)}`, whose memory layout may be another"
            difference.append(differs(said, Effect.STRIDES))
    else:
        new = cst.Expr(build.method(target.owner, "copy_", made))
        if elements_may_share(context, target.owner):
            said = (
                f"if elements of `{plain(context, target.owner)}` share memory, as after `expand`, "
                "it raises or writes other values"
            )
            difference.append(differs(said, Effect.RAISES, Effect.STATE))
        if found.saves and may_require_gradient(context, target.owner):
            # Indexing makes a copy, which autograd may keep; here it keeps the tensor that is then changed in place.
            said = f"autograd raises if it needs the old value of `{plain(context, target.owner)}`"
            difference.append(differs(said, Effect.GRADIENTS))
    if shares_with_index(context, target.owner, target.mask):
        said = (
            f"if `{plain(context, target.mask)}` shares memory with `{plain(context, target.owner)}`, it does not raise"
        )
        difference.append(differs(said, Effect.NO_LONGER_RAISES))
    return Edit({small: new}, [*difference, *needs])


def _keeps_layout(context: RewriteContext, target: Leaf) -> bool:
    """Whether ``torch.where`` returns the layout of the tensor: that of its first operand, the mask."""
    owner, mask = context.fact(target.owner).tensor, context.fact(target.mask).tensor
    if owner is None or mask is None:
        return False
    return owner.layout == mask.layout or is_vector(owner) or is_vector(mask)


def _keeps_gradient(context: RewriteContext, name: cst.Name) -> bool:
    """Whether a tensor may have a gradient from where gradients are recorded, although none are here."""
    if is_switched_by_calls(context, name):
        return may_require_gradient(context, name)
    scope = uncertain_gradient_scope(context, name)
    if not isinstance(scope, cst.With) or not may_require_gradient(context, name):
        return False
    made = origin(context, name).anchor
    return made is None or not any(one is scope for one in context.around(made))
