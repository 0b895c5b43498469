"""``x[torch.where(mask)] = 0`` → ``x[mask] = 0``, and the first index → ``argmax``.

The indices of nonzero elements are not needed to assign one value to them, or to find the first."""

import libcst as cst

from breakscan.fix.result import Effect, differs
from breakscan.fix.support import build
from breakscan.fix.support import matchers as m
from breakscan.fix.support.context import Declined, Edit, OtherForm, RewriteContext
from breakscan.fix.support.masked import Leaf, conditions, hits_of, is_scalar
from breakscan.fix.support.operators import called
from breakscan.fix.support.purity import decline_for, why_not_pure

_HOLDERS = (cst.Index, cst.SubscriptElement, cst.Arg)
_ZERO = m.Index(m.Integer("0"))
_ZERO_DIM = differs("a mask without dimensions does not raise", Effect.NO_LONGER_RAISES)
_FIRST = differs(
    "the mask must have one dimension; if it selects nothing, the result is 0 instead of an IndexError",
    *(Effect.NO_LONGER_RAISES, Effect.VALUES),
)
_NEEDS_INDICES = "needs the indices themselves, and how many there are depends on values"


def rewrite(context: RewriteContext) -> Edit:
    """The use of the indices, computed from the mask."""
    if not isinstance(context.node, cst.Call):
        raise OtherForm("this is not a call")
    mask = hits_of(context, context.node)
    rows = mask is None
    if mask is None:
        mask = _matrix_of(context, context.node)
    decline_for(why_not_pure(context, mask))
    context.require_tensor(mask)
    above = context.outside(context.parent(context.node), *_HOLDERS)
    if not rows and isinstance(above, cst.Subscript) and above.value is not context.node:
        return _store(context, above, mask)
    vector = _vector(context, context.node, rows)
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


def _vector(context: RewriteContext, node: cst.Call, rows: bool) -> cst.BaseExpression:
    """The expression of the indices in one dimension."""
    above = context.parent(node)
    if not rows:
        if isinstance(above, cst.Subscript) and m.matches(above.slice[0].slice, _ZERO) and len(above.slice) == 1:
            return above
        unpacked = m.Tuple([m.Element()]) | m.List([m.Element()])
        if isinstance(above, cst.Assign) and m.matches(above.targets[0].target, unpacked):
            return node
        raise Declined("the indices of every dimension are needed, and how many there are depends on values")
    call = context.parent(above) if isinstance(above, cst.Attribute) else None
    if isinstance(call, cst.Call) and isinstance(above, cst.Attribute):
        minus_one = m.UnaryOperation(operator=m.Minus(), expression=m.Integer("1"))
        at_the_end = not call.args or m.matches(call.args[0].value, minus_one)
        if above.attr.value in ("flatten", "ravel", "squeeze") and at_the_end:
            return call
        if above.attr.value in ("view", "reshape") and m.matches(call, m.Call(args=[m.Arg(minus_one)])):
            return call
    column = m.SubscriptElement(m.Slice(lower=None, upper=None, step=None)), m.SubscriptElement(_ZERO)
    if isinstance(above, cst.Subscript) and above.value is node and m.matches(above, m.Subscript(slice=list(column))):
        return above
    return node


def _used(context: RewriteContext, vector: cst.BaseExpression, mask: cst.BaseExpression, rows: bool) -> Edit:
    """Indices that are used in the same expression."""
    above = context.outside(context.parent(vector), *_HOLDERS)
    if isinstance(above, cst.Subscript) and above.value is vector:
        first = _first_at(context, above, rows)
        # `argmax` returns the first of several, and does not support bool.
        is_bool = context.fact(mask).dtype == "bool"
        truth = mask if is_bool else build.binary(mask, cst.NotEqual(), build.expression("0"))  # type: ignore[arg-type]
        return Edit({first: build.method(build.method(truth, "int"), "argmax")}, [_FIRST])
    if isinstance(above, cst.For | cst.CompFor):
        raise Declined("a loop runs once for each selected element")
    if isinstance(above, cst.Return):
        raise Declined("the indices are returned")
    if isinstance(above, cst.Assign):
        raise Declined("the indices are stored where other code can read them")
    where = above if isinstance(above, cst.BaseExpression) else vector
    raise Declined(f"`{context.plain(where)}` {_NEEDS_INDICES}")


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
    raise Declined(f"`{context.plain(subscript)}` {_NEEDS_INDICES}")
