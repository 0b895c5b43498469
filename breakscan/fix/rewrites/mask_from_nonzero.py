"""``x[torch.where(mask)] = 0`` → ``x[mask] = 0``; a count → ``count_nonzero``, the first index → ``argmax``.

The indices of nonzero elements are not needed to count them, to assign one value to them, or to find the first.
"""

from __future__ import annotations

import libcst as cst

from breakscan.fix.support import build
from breakscan.fix.support import matchers as m
from breakscan.fix.support.assignments import reads_of
from breakscan.fix.support.context import Declined, Edit, OtherForm, RewriteContext
from breakscan.fix.support.difference import Difference, Effect, assumes, differs
from breakscan.fix.support.masked import COUNT, Leaf, conditions, hits_of, is_scalar
from breakscan.fix.support.operators import called
from breakscan.fix.support.purity import why_not_pure

_ZERO = m.Index(m.Integer("0"))
_ZERO_DIM = differs("a mask without dimensions does not raise", Effect.NO_LONGER_RAISES)
_ONE_DIM = assumes("the mask must have one dimension")
_FIRST = differs(
    "the mask must have one dimension; if it selects nothing, the result is 0 instead of an IndexError",
    *(Effect.NO_LONGER_RAISES, Effect.VALUES),
)


def rewrite(context: RewriteContext) -> Edit:
    """The use of the indices, computed from the mask."""
    if not isinstance(context.node, cst.Call):
        raise OtherForm("this is not a call")
    mask = hits_of(context, context.node)
    rows = mask is None
    if mask is None:
        mask = _matrix_of(context, context.node)
    if (reason := why_not_pure(context, mask)) is not None:
        raise Declined(reason)
    if not context.fact(mask).is_tensor:
        raise Declined(f"`{context.plain(mask)}` is not known to be a tensor")
    above = _above(context, context.node)
    if not rows and isinstance(above, cst.Subscript) and above.value is not context.node:
        return _store(context, above, mask)
    vector, one_dim = _vector(context, context.node, rows)
    statement = context.parent(vector)
    if isinstance(statement, cst.Assign):
        return _named(context, statement, mask, one_dim)
    return _used(context, vector, mask, rows and vector is context.node)


def _matrix_of(context: RewriteContext, node: cst.Call) -> cst.BaseExpression:
    """The mask of a ``nonzero`` that returns one row for each nonzero element."""
    function, method = called(context, node)
    given = [arg for arg in node.args if not m.matches(arg, m.Arg(m.Name("False"), keyword=m.Name("as_tuple")))]
    if method in ("nonzero", "argwhere") and isinstance(node.func, cst.Attribute) and not given:
        return node.func.value
    if function in ("torch.nonzero", "torch.argwhere") and len(given) == 1 and given[0].keyword is None:
        return given[0].value
    raise Declined("the call does not have one mask as its only argument")


def _above(context: RewriteContext, node: cst.CSTNode) -> cst.CSTNode | None:
    """The expression of which a node is an operand, index or receiver."""
    above = context.parent(node)
    while isinstance(above, cst.Index | cst.SubscriptElement | cst.Arg):
        above = context.parent(above)
    return above


def _store(context: RewriteContext, subscript: cst.Subscript, mask: cst.BaseExpression) -> Edit:
    """``x[torch.where(mask)] = 0``: the assignment of one value with a bool mask compiles."""
    if len(subscript.slice) != 1:
        raise Declined("the indices are one of several indices")
    assignment = context.parent(context.parent(subscript) or subscript)
    if not isinstance(assignment, cst.Assign) or not isinstance(context.parent(subscript), cst.AssignTarget):
        raise Declined("the selected elements themselves are needed")
    if not is_scalar(context, assignment.value):
        raise Declined(f"`{context.plain(assignment.value)}` may have a different value for each selected element")
    leaf = Leaf(subscript, subscript.value, mask)
    return Edit({context.node: build.copied(mask)}, [_ZERO_DIM, *conditions(context, mask, [leaf])])


def _vector(context: RewriteContext, node: cst.Call, rows: bool) -> tuple[cst.BaseExpression, bool]:
    """The expression of the indices in one dimension, and whether the code shows that the mask has only one."""
    above = context.parent(node)
    if not rows:
        if isinstance(above, cst.Subscript) and m.matches(above.slice[0].slice, _ZERO) and len(above.slice) == 1:
            return above, False
        if isinstance(above, cst.Assign) and m.matches(
            above.targets[0].target, m.Tuple([m.Element()]) | m.List([m.Element()])
        ):
            return node, True
        raise Declined("the indices of every dimension are needed, and how many there are depends on values")
    call = context.parent(above) if isinstance(above, cst.Attribute) else None
    if isinstance(call, cst.Call) and isinstance(above, cst.Attribute):
        minus_one = m.UnaryOperation(operator=m.Minus(), expression=m.Integer("1"))
        if above.attr.value in ("flatten", "ravel", "squeeze") and (
            not call.args or m.matches(call.args[0].value, minus_one)
        ):
            return call, False
        if above.attr.value in ("view", "reshape") and m.matches(call, m.Call(args=[m.Arg(minus_one)])):
            return call, False
    column = m.SubscriptElement(m.Slice(lower=None, upper=None, step=None)), m.SubscriptElement(_ZERO)
    if isinstance(above, cst.Subscript) and above.value is node and m.matches(above, m.Subscript(slice=list(column))):
        return above, False
    return node, False


def _used(context: RewriteContext, vector: cst.BaseExpression, mask: cst.BaseExpression, rows: bool) -> Edit:
    """Indices that are used in the same expression."""
    above = _above(context, vector)
    counted = _count_at(context, vector)
    if counted is not None:
        if rows and m.matches(counted, m.Call(func=m.Attribute(attr=m.Name("numel")))):
            raise Declined("`numel` counts the indices of every dimension")
        made = build.call(context.imported("torch.count_nonzero"), mask)
        return Edit({_as_tensor(context, counted): made}, [COUNT])
    if isinstance(above, cst.Subscript) and above.value is vector:
        first = _first_at(context, above, rows)
        return Edit({first: _argmax(context, mask)}, [_FIRST])
    if isinstance(above, cst.For | cst.CompFor):
        raise Declined("a loop runs once for each selected element")
    if isinstance(above, cst.Return):
        raise Declined("the indices are returned")
    where = above if isinstance(above, cst.BaseExpression) else vector
    raise Declined(f"`{context.plain(where)}` needs the indices themselves, and how many there are depends on values")


def _argmax(context: RewriteContext, mask: cst.BaseExpression) -> cst.BaseExpression:
    """The position of the first nonzero element: ``argmax`` returns the first of several, and does not support bool."""
    truth = mask if context.fact(mask).dtype == "bool" else build.binary(mask, cst.NotEqual(), build.expression("0"))  # type: ignore[arg-type]
    return build.method(build.method(truth, "int"), "argmax")


def _count_at(context: RewriteContext, vector: cst.BaseExpression) -> cst.BaseExpression | None:
    """The expression that counts the indices."""
    parent = context.parent(vector)
    if isinstance(parent, cst.Arg):
        call = context.parent(parent)
        return call if isinstance(call, cst.Call) and m.matches(call, m.Call(m.Name("len"), [m.Arg()])) else None
    if not isinstance(parent, cst.Attribute):
        return None
    above = context.parent(parent)
    counts = m.Subscript(m.Attribute(attr=m.Name("shape")), [m.SubscriptElement(_ZERO)]) | m.Call(
        m.Attribute(attr=m.Name("size")), [m.Arg(m.Integer("0"))]
    )
    counts = counts | m.Call(m.Attribute(attr=m.Name("numel")), [])
    return above if isinstance(above, cst.BaseExpression) and m.matches(above, counts) else None


def _as_tensor(context: RewriteContext, count: cst.BaseExpression) -> cst.BaseExpression:
    """A count that may be a tensor instead of a Python number.  Declines if it may not."""
    above = context.parent(count)
    if isinstance(above, cst.BinaryOperation):
        fact = context.fact(above.right if above.left is count else above.left)
        if fact.is_tensor and fact.certain and fact.dtype == "float":
            return count
    raise Declined("the count is needed as a Python number: use `mask.sum()`, a tensor, instead")


def _first_at(context: RewriteContext, subscript: cst.Subscript, rows: bool) -> cst.BaseExpression:
    """The expression of the first index."""
    if m.matches(subscript, m.Subscript(slice=[m.SubscriptElement(_ZERO)])):
        if not rows:
            return subscript
        outer = context.parent(subscript)
        if isinstance(outer, cst.Subscript) and m.matches(outer, m.Subscript(slice=[m.SubscriptElement(_ZERO)])):
            return outer
    if rows and m.matches(subscript, m.Subscript(slice=[m.SubscriptElement(_ZERO), m.SubscriptElement(_ZERO)])):
        return subscript
    raise Declined(
        f"`{context.plain(subscript)}` needs the indices themselves, and how many there are depends on values"
    )


# -- indices with a name --------------------------------------------------------------------------------------------


def _named(context: RewriteContext, assignment: cst.Assign, mask: cst.BaseExpression, one_dim: bool) -> Edit:
    """The name holds the mask instead, or the first index if nothing else is used."""
    target: cst.BaseExpression = assignment.targets[0].target
    if isinstance(target, cst.Tuple | cst.List) and one_dim:
        target = target.elements[0].value
    if not isinstance(target, cst.Name) or len(assignment.targets) != 1:
        raise Declined("the indices are stored where other code can read them")
    line = context.line(assignment)
    uses = reads_of(context, target, line)
    counts = {one: _count_at(context, one) for one in uses}
    firsts = [context.parent(one) for one in uses]
    if all(
        isinstance(one, cst.Subscript)
        and m.matches(one, m.Subscript(m.Name(target.value), [m.SubscriptElement(_ZERO)]))
        for one in firsts
    ):
        made = build.assignment(target, _argmax(context, mask)).body[0]
        changes: dict[cst.CSTNode, cst.CSTNode] = {assignment: made}
        changes.update({one: build.copied(target) for one in firsts if isinstance(one, cst.Subscript)})
        return Edit(changes, [_FIRST])
    needs: list[Difference] = [_ONE_DIM]
    changes = {assignment: build.assignment(target, build.copied(mask)).body[0]}
    for one in uses:
        count = counts[one]
        if count is not None:
            changes[_as_tensor(context, count)] = build.method(target, "sum")
            needs.insert(0, COUNT)
        else:
            needs += conditions(context, mask, [Leaf(one, _stored_into(context, one), mask)])
    return Edit(changes, list(dict.fromkeys(needs)))


def _stored_into(context: RewriteContext, name: cst.Name) -> cst.BaseExpression:
    """The tensor that a name indexes in the assignment of one value.  Declines for any other use."""
    subscript = _above(context, name)
    target = context.parent(subscript) if subscript is not None else None
    assignment = context.parent(target) if isinstance(target, cst.AssignTarget) else None
    if isinstance(subscript, cst.Subscript) and len(subscript.slice) == 1 and isinstance(assignment, cst.Assign):
        if is_scalar(context, assignment.value):
            return subscript.value
        raise Declined(f"`{context.plain(assignment.value)}` may have a different value for each selected element")
    where = subscript if isinstance(subscript, cst.BaseExpression) else name
    raise Declined(f"`{context.plain(where)}` needs the indices themselves, and how many there are depends on values")
