"""``for i, j in np.ndindex(a, b)`` → ``for i, j in itertools.product(range(a), range(b))``.

Both give the same tuples of Python integers, the last index fastest.  Only NumPy raises if a size is negative.
"""

from __future__ import annotations

import libcst as cst

from breakscan.fix.support import matchers as m
from breakscan.fix.support.build import call, copied
from breakscan.fix.support.called import is_builtin
from breakscan.fix.support.context import RewriteContext
from breakscan.fix.support.difference import Effect, differs
from breakscan.fix.support.edit import Declined, Edit, OtherForm
from breakscan.fix.support.numbers import written_number
from breakscan.fix.support.sizes import is_size

_NEGATIVE = differs("if a size is negative, there are no indices, and there is no ValueError", Effect.NO_LONGER_RAISES)


def rewrite(context: RewriteContext) -> Edit:
    """The indices as a product of ranges."""
    node = context.node
    if not isinstance(node, cst.Call) or context.dotted(node.func) != "numpy.ndindex":
        raise OtherForm("this is not a call of `numpy.ndindex`")
    above = context.parent(node)
    if not isinstance(above, cst.For | cst.CompFor) or above.iter is not node:
        raise Declined("a loop does not run over the indices directly")
    if any(arg.keyword is not None for arg in node.args):
        raise Declined("the sizes are not positional")
    whole = len(node.args) == 1 and _are_sizes(context, node.args[0].value)
    if not whole and (len(node.args) < 2 or any(arg.star for arg in node.args)):
        raise Declined("the sizes are in a tuple that is not the shape of a tensor")
    for name in ("range", "map") if whole else ("range",):
        if not is_builtin(context, name, node):
            raise Declined(f"`{name}` may have another meaning in this file")
    product = context.imported("itertools.product")
    if whole:
        ranges = call(cst.Name("map"), cst.Name("range"), copied(node.args[0].value))
        return Edit({node: cst.Call(product, [cst.Arg(ranges, star="*")])}, keeps_operations=True)
    sizes = [arg.value for arg in node.args]
    made = call(product, *[call(cst.Name("range"), copied(one)) for one in sizes])
    known = all(_is_not_negative(context, one) for one in sizes)
    return Edit({node: made}, [] if known else [_NEGATIVE], keeps_operations=True)


def _are_sizes(context: RewriteContext, node: cst.BaseExpression) -> bool:
    """Whether an expression is the shape of a tensor, or a part of it."""
    if m.matches(node, m.Subscript(slice=[m.SubscriptElement(m.Slice())])):
        return _are_sizes(context, cst.ensure_type(node, cst.Subscript).value)
    owner: cst.BaseExpression | None = None
    if isinstance(node, cst.Attribute) and node.attr.value == "shape":
        owner = node.value
    elif isinstance(node, cst.Call) and context.method(node) == "size" and not node.args:
        owner = cst.ensure_type(node.func, cst.Attribute).value
    return owner is not None and context.fact(owner).is_tensor and context.fact(owner).certain


def _is_not_negative(context: RewriteContext, node: cst.BaseExpression) -> bool:
    number = written_number(node)
    return number >= 0 if isinstance(number, int) else is_size(context, node)
