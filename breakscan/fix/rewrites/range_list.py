"""``torch.arange(2, n).tolist()`` → ``list(range(2, n))``, with Python integers.

``range`` is computed during tracing, and gives the same integers.  If the end is before the start, ``torch.arange``
raises, and a range is empty.
"""

from __future__ import annotations

import libcst as cst

from breakscan.fix.result import Effect, assumes, differs
from breakscan.fix.support import matchers as m
from breakscan.fix.support.build import call, copied
from breakscan.fix.support.context import Declined, Edit, OtherForm, RewriteContext
from breakscan.fix.support.operators import called, is_builtin, is_size, written_number

_NOT_CALLED = assumes("nothing may see or replace `torch.arange`")
_TOLIST = m.Call(func=m.Attribute(value=m.Call(), attr=m.Name("tolist")), args=[])


def rewrite(context: RewriteContext) -> Edit:
    """The list of a range."""
    node = context.node
    if not m.matches(node, _TOLIST):
        raise OtherForm("no list is made of a call")
    made = cst.ensure_type(cst.ensure_type(cst.ensure_type(node, cst.Call).func, cst.Attribute).value, cst.Call)
    if called(context, made)[0] != "torch.arange":
        raise OtherForm(f"`{context.code(made.func)}` is not `torch.arange`")
    if not 1 <= len(made.args) <= 2 or any(arg.keyword is not None or arg.star for arg in made.args):
        raise Declined("`torch.arange` is called with more than a start and an end")
    bounds = [arg.value for arg in made.args]
    for one in bounds:
        if not _is_integer(context, one):
            raise Declined(f"`{context.code(one)}` is not known to be a Python integer")
    for name in ("list", "range"):
        if not is_builtin(context, name, node):
            raise Declined(f"`{name}` may have another meaning in this file")
    differences = [_NOT_CALLED]
    if not _is_upwards(context, bounds):
        said = "if the end is before the start, the list is empty, and there is no RuntimeError"
        differences.append(differs(said, Effect.NO_LONGER_RAISES))
    whole = call(cst.Name("range"), *[copied(one) for one in bounds])
    return Edit({node: call(cst.Name("list"), whole)}, differences)


def _is_integer(context: RewriteContext, node: cst.BaseExpression) -> bool:
    number = written_number(node)
    if number is not None:
        return isinstance(number, int)
    return is_size(context, node)


def _is_upwards(context: RewriteContext, bounds: list[cst.BaseExpression]) -> bool:
    """True if the end is known not to be before the start."""
    start = 0 if len(bounds) == 1 else written_number(bounds[0])
    end = written_number(bounds[-1])
    least = end if isinstance(end, int) else 0 if is_size(context, bounds[-1]) else None
    return isinstance(start, int) and least is not None and start <= least
