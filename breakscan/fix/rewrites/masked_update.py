"""``x[mask] = f(y[mask])`` → ``x = torch.where(mask, f(y), x)``, and ``x[mask] += 1`` likewise.

Both write ``f(y)`` where the mask is True and leave the rest of ``x``.  The mask must select single elements, not rows,
because ``torch.where`` aligns shapes at the last dimension.  A tensor
that something else may reach is still changed in place, by ``x.copy_``; only one that the function made and holds by
one name is bound again."""

import libcst as cst

from breakscan.fix.result import Effect, assumes, differs
from breakscan.fix.support import build
from breakscan.fix.support import matchers as m
from breakscan.fix.support.build import AUGMENTED, copied
from breakscan.fix.support.context import Declined, Edit, OtherForm, RewriteContext
from breakscan.fix.support.masked import (
    Leaf,
    conditions,
    filled,
    is_scalar,
    leaf_at,
    leaf_of,
    masked,
    refuse_poles,
    whole,
)
from breakscan.fix.support.purity import is_local, refuse_breaks_in

_OUTSIDE = differs(
    "all elements are computed: gradients may become NaN, and neither dtypes that differ nor backward() may raise",
    *(Effect.GRADIENTS, Effect.DTYPES, Effect.STRIDES, Effect.NO_LONGER_RAISES),
)


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
    if target is None or context.plain(target.mask) != context.plain(leaf.mask):
        kind = OtherForm if isinstance(small.targets[0].target, cst.Name) else Declined
        raise kind("the selected elements are not assigned with the same mask, as in `y[mask] = x[mask]`")
    if len(small.targets) > 1:
        raise Declined("several targets are assigned at once")
    context.require_tensor(target.owner)
    found = masked(context, small.value, leaf.mask)
    if not any(one.node is leaf.node for one in found.leaves):
        raise Declined("the selected elements are reduced to a single value")
    refuse_poles(context, small.value, found.leaves)
    value = whole(context, small.value, found.leaves)
    return _edit(context, small, target, value, [target, *found.leaves])


def _of_augmented(context: RewriteContext, small: cst.AugAssign, leaf: Leaf) -> Edit:
    operator = AUGMENTED.get(type(small.operator))
    if operator is None:
        raise Declined("the operator may raise where the mask is False")
    others: list[Leaf] = []
    if not is_scalar(context, small.value):
        if not context.fact(small.value).is_tensor:
            raise Declined(f"`{context.plain(small.value)}` may have as many elements as the mask selects")
        others = masked(context, small.value, leaf.mask).leaves
        refuse_poles(context, small.value, others)
    right = whole(context, small.value, others)
    right = copied(right) if isinstance(right, cst.UnaryOperation) else build.operand(right)
    value = cst.BinaryOperation(build.operand(leaf.owner), operator, right)
    return _edit(context, small, leaf, value, [leaf, *others], keeps_dtype=not others)


def _edit(
    context: RewriteContext,
    small: cst.Assign | cst.AugAssign,
    target: Leaf,
    value: cst.BaseExpression,
    leaves: list[Leaf],
    keeps_dtype: bool = True,
) -> Edit:
    made = filled(context, target.mask, value, target.owner)
    refuse_breaks_in(context, small, made)
    needs = conditions(context, target.mask, leaves)
    owner = target.owner
    if keeps_dtype and isinstance(owner, cst.Name) and is_local(context, owner):
        return Edit({small: cst.Assign([cst.AssignTarget(cst.Name(owner.value))], made)}, [_OUTSIDE, *needs])
    text = context.plain(owner)
    bound = cst.Assign([cst.AssignTarget(cst.Name(text))], made)
    if keeps_dtype and (maker := _just_made_by(context, small, owner)) is not None:
        return Edit({small: bound}, [_OUTSIDE, assumes(f"nothing else may hold what `{maker}` returns"), *needs])
    said = f"all of `{text}` is overwritten: it must be no expanded view, and backward() may raise or give NaN"
    effects = Effect.STATE, Effect.RAISES, Effect.GRADIENTS, Effect.DTYPES, Effect.NO_LONGER_RAISES
    return Edit({small: cst.Expr(build.method(owner, "copy_", made))}, [differs(said, *effects), *needs])


def _just_made_by(context: RewriteContext, small: cst.Assign | cst.AugAssign, owner: cst.BaseExpression) -> str | None:
    """The function whose result a name was bound to in the line above."""
    body, position = context.siblings(context.line(small))
    above = body[position - 1] if position else None
    bound = above.body[-1] if isinstance(above, cst.SimpleStatementLine) else None
    if not isinstance(bound, cst.Assign) or not isinstance(bound.value, cst.Call) or not isinstance(owner, cst.Name):
        return None
    is_there = m.matches(bound, m.Assign([m.AssignTarget(m.Name(owner.value))]))
    return context.code(bound.value.func) if is_there else None
