"""``F.cross_entropy(x[mask], y[mask])`` → ``F.cross_entropy(x, y, ignore_index=c)``, where ``mask`` is ``y != c``.

For other masks, the targets outside the mask get the index that the loss ignores: ``torch.where(mask, y, -100)``.
Where the selected rows have names, a mean or a sum of what else is computed from each row, such as an accuracy, is one
under the mask."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import libcst as cst

from breakscan.fix.result import Effect, assumes, differs
from breakscan.fix.support import build
from breakscan.fix.support import matchers as m
from breakscan.fix.support.assignments import defined, is_bound_once, origin, plain_value, reads_of
from breakscan.fix.support.context import Declined, Edit, OtherForm, Replacement, RewriteContext
from breakscan.fix.support.masked import (
    Leaf,
    Loss,
    conditions,
    filled,
    in_place_of,
    is_vector,
    leaf_of,
    loss_of,
    masked,
    name_of_loss,
    whole,
    zero,
)
from breakscan.fix.support.operators import called, only_argument
from breakscan.fix.support.purity import refuse_breaks_in
from breakscan.fix.support.rows import Rows, of_all
from breakscan.fix.support.walking import findall
from breakscan.rulebook.torch_facts.not_measured import IGNORED_BY_DEFAULT, OF_CLASSES

_CLASSES = differs(
    "targets must be class indices; those left out are ignored, and their rows may make gradients NaN",
    *(Effect.VALUES, Effect.GRADIENTS, Effect.RAISES),
)
_AND_METRICS = assumes(
    "targets must be class indices, and metrics have one value for each row, added in another order; rows that are left"
    " out may make gradients NaN"
)
_COUNTED = m.Call(m.Attribute(m.Comparison(), m.Name("float")), [])
_REDUCED = m.Call(m.Attribute(attr=m.Name("mean") | m.Name("sum")), [])


@dataclass(slots=True)
class _Side:
    """An argument of the loss: ``value`` are the selected rows, which ``line`` gives a name, or which are passed."""

    arg: cst.Arg
    value: cst.BaseExpression
    line: cst.SimpleStatementLine | None
    others: Sequence[cst.Name] = ()
    """The reads of the name besides the loss."""
    leaves: list[Leaf] = field(default_factory=list)

    @property
    def owner(self) -> cst.BaseExpression:
        return self.leaves[0].owner


def rewrite(context: RewriteContext) -> Edit:
    """The loss of all rows."""
    leaf = leaf_of(context)
    loss = _loss_around(context, leaf.node)
    prediction, target = _sides(context, loss, leaf)
    kind = context.fact(target.owner)
    if kind.dtype == "float":
        raise Declined(f"`{context.plain(target.owner)}` holds probabilities, which are not ignored")
    changes: dict[cst.CSTNode, Replacement] = {}
    made = list(loss.call.args)
    values = [whole(context, side.value, side.leaves) for side in (prediction, target)]
    index, adds = _ignored(context, loss, leaf, target)
    if index is not None:
        values[1] = filled(context, leaf.mask, values[1], index)
    mask = build.copied(leaf.mask)
    if not is_vector(context, leaf.mask):
        ends = [build.expression(text) for text in ("0", "-2")]
        values = [build.method(values[0], "flatten", *ends), build.method(values[1], "flatten")]
        mask = build.method(mask, "flatten")
    has_metrics = _metrics(context, [prediction, target], leaf, mask, changes)
    for side, value in zip((prediction, target), values, strict=True):
        if side.line is None:
            made[made.index(side.arg)] = side.arg.with_changes(value=value)
        elif m.matches(side.arg.value, m.Name(context.plain(value))) and len(side.line.body) == 1:
            if len(context.siblings(side.line)[0]) == 1:
                raise Declined("the line with the selected rows is the only one in its block")
            changes[side.line] = None
        else:
            changes[side.value] = value
    if adds is not None:
        made.append(build.argument(adds, "ignore_index"))
    plain = {"comma": cst.MaybeSentinel.DEFAULT, "whitespace_after_arg": cst.SimpleWhitespace("")}
    new = cst.Call(build.operand(loss.call.func), [one.with_changes(**plain) for one in made])
    refuse_breaks_in(context, loss.call, new)
    if context.plain(loss.call) != context.plain(new):
        changes[loss.call] = new
    return Edit(changes, [_AND_METRICS if has_metrics else _CLASSES, *conditions(context, leaf.mask, target.leaves)])


# -- what is computed -----------------------------------------------------------------------------------------------


def _loss_around(context: RewriteContext, node: cst.BaseExpression) -> Loss:
    """The loss of classes that selected rows are passed to, in the same expression or under a name."""
    line, value = context.statement(node), context.enclosing(cst.Assign, node)
    for above in context.around(node):
        if isinstance(above, cst.Call) and name_of_loss(context, above) in OF_CLASSES:
            return loss_of(context, above)
    named = value is not None and m.matches(value, m.Assign([m.AssignTarget(m.Name())]))
    if value is None or not named or not isinstance(line, cst.SimpleStatementLine):
        raise OtherForm("the selected rows are not passed to a loss of classes")
    for use in reads_of(context, cst.ensure_type(value.targets[0].target, cst.Name), line):
        call = context.parent(context.parent(use) or use)
        if isinstance(call, cst.Call) and name_of_loss(context, call) in OF_CLASSES:
            return loss_of(context, call)
    raise OtherForm("the selected rows are not passed to a loss of classes")


def _sides(context: RewriteContext, loss: Loss, leaf: Leaf) -> tuple[_Side, _Side]:
    """The prediction and the target, both selected by the mask."""
    ordered = sorted(loss.sides, key=lambda arg: arg.keyword is not None and arg.keyword.value == "target")
    found = [_side(context, arg) for arg in ordered]
    for side in found:
        side.leaves = masked(context, side.value, leaf.mask).leaves
        if len(side.leaves) != 1 or side.leaves[0].loose == "select":
            raise Declined(f"`{context.plain(side.value)}` are not rows that `{context.plain(leaf.mask)}` selects")
        if _anchors(context, side.leaves[0].mask) != _anchors(context, leaf.mask):
            raise Declined(f"`{context.plain(leaf.mask)}` may be a different mask: give it another name")
    return found[0], found[1]


def _side(context: RewriteContext, arg: cst.Arg) -> _Side:
    if not isinstance(arg.value, cst.Name):
        return _Side(arg, arg.value, None)
    line = origin(context, arg.value).anchor
    value = plain_value(line, arg.value.value) if line is not None else None
    if value is None or not isinstance(line, cst.SimpleStatementLine):
        raise Declined(f"`{arg.value.value}` is not selected by the same mask")
    small = context.parent(value)
    named = small.targets[0].target if isinstance(small, cst.Assign) else cst.ensure_type(small, cst.AnnAssign).target
    uses = reads_of(context, cst.ensure_type(named, cst.Name), line)
    return _Side(arg, value, line, [one for one in uses if one is not arg.value])


def _metrics(
    context: RewriteContext,
    sides: Sequence[_Side],
    leaf: Leaf,
    mask: cst.BaseExpression,
    changes: dict[cst.CSTNode, Replacement],
) -> bool:
    """Adds the changes of what is computed from the selected rows besides the loss, if there is any.  ``mask`` is the
    mask of all rows."""
    packed = {cst.ensure_type(one.arg.value, cst.Name).value for one in sides if one.line}
    rows = Rows(context.plain(mask), packed=packed)
    for use in (one for side in sides for one in side.others):
        if any(one in changes for one in context.around(use)):
            continue
        reduced = next((one for one in context.around(use) if m.matches(one, _REDUCED)), None)
        if not isinstance(leaf.mask, cst.Name) or not is_bound_once(context, leaf.mask.value):
            raise Declined("the mask is needed again, and may be another one there: give it a name of its own")
        if reduced is None:
            raise Declined(f"`{use.value}` is used for more than the loss, and its size depends on values")
        function = cst.ensure_type(cst.ensure_type(reduced, cst.Call).func, cst.Attribute)
        each, is_mean = of_all(context, rows, function.value), function.attr.value == "mean"
        if m.matches(each, _COUNTED) and is_mean:
            hit = cst.ensure_type(cst.ensure_type(each, cst.Call).func, cst.Attribute).value
            made: cst.BaseExpression = build.method(build.binary(hit, cst.BitAnd(), mask), "sum")
        else:
            made = build.method(filled(context, mask, each, zero(context, function.value)), "sum")
        if is_mean:
            made = build.binary(made, cst.Divide(), build.method(leaf.mask, "sum"))
        changes[reduced] = in_place_of(context, cst.ensure_type(reduced, cst.Call), made)
    return any(side.others for side in sides)


def _anchors(context: RewriteContext, node: cst.BaseExpression) -> list[cst.CSTNode | None]:
    """The assignments that give the names in an expression their values."""
    names = (cst.ensure_type(one, cst.Name) for one in findall(node, m.Name()))
    return [origin(context, one).anchor for one in names if one in context.tree.parents]


# -- what is ignored ------------------------------------------------------------------------------------------------


def _ignored(
    context: RewriteContext, loss: Loss, leaf: Leaf, target: _Side
) -> tuple[cst.BaseExpression | None, cst.BaseExpression | None]:
    """The new targets outside the mask, and the index that the loss ignores in addition."""
    given = dict(loss.settings).get("ignore_index")
    index = given or build.expression(str(IGNORED_BY_DEFAULT))
    dropped = _compared(context, leaf.mask, target)
    if dropped is not None and context.plain(dropped) == context.plain(index):
        return None, None
    is_int = dropped is not None and (_is_int(dropped) or type(context.fact(dropped).literal) is int)
    if dropped is not None and is_int and given is None and loss.module is None:
        return None, dropped
    if loss.module is not None and isinstance(loss.call.func, cst.Attribute):
        index = cst.Attribute(build.operand(loss.call.func), cst.Name("ignore_index"))
    elif given is not None and not _is_int(given):
        raise Declined(f"`{context.plain(given)}` is ignored already: choose one index for both")
    return index, None


def _is_int(node: cst.BaseExpression) -> bool:
    return m.matches(node, m.Integer() | m.UnaryOperation(operator=m.Minus(), expression=m.Integer()))


def _compared(context: RewriteContext, mask: cst.BaseExpression, target: _Side) -> cst.BaseExpression | None:
    """The value that is left out, if the mask is True for all other values of the target."""
    made = defined(context, mask)
    if m.matches(target.value, m.Call()):
        return None
    if m.matches(made, m.Comparison(comparisons=[m.ComparisonTarget(operator=m.NotEqual())])):
        compared = cst.ensure_type(made, cst.Comparison)
        owner, value = compared.left, compared.comparisons[0].comparator
    elif isinstance(made, cst.Call) and called(context, made)[1] == "ne" and isinstance(made.func, cst.Attribute):
        argument = only_argument(made)
        if argument is None:
            return None
        owner, value = made.func.value, argument
    else:
        return None
    if not isinstance(owner, cst.Name) or context.plain(owner) != context.plain(target.owner):
        return None
    if _anchors(context, owner) != _anchors(context, target.owner):
        return None
    return value
