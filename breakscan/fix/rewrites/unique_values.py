"""``values = torch.unique(t)`` of which a check asks ``any`` or ``all`` → ``t`` itself in compiled code."""

from __future__ import annotations

import libcst as cst

from breakscan.fix.support import matchers as m
from breakscan.fix.support.assignments import is_read
from breakscan.fix.support.build import copied
from breakscan.fix.support.checks import compiling
from breakscan.fix.support.context import Declined, Edit, OtherForm, RewriteContext
from breakscan.fix.support.difference import Effect, differs
from breakscan.fix.support.operators import called
from breakscan.fix.support.walking import nodes_named

_ALL = differs("compiled code compares all elements, and not each different one once", Effect.OUTPUT)
_ELEMENTWISE = cst.Comparison | cst.ComparisonTarget | cst.BinaryOperation | cst.UnaryOperation


def rewrite(context: RewriteContext) -> Edit:
    """The tensor for its different values, in compiled code."""
    node, small = context.node, context.parent(context.node)
    if not isinstance(node, cst.Call) or called(context, node)[0] != "torch.unique" or not node.args:
        raise OtherForm("this is not `torch.unique`")
    if not all(m.matches(one, m.Arg(m.Name("None"), keyword=m.Name("dim"))) for one in node.args[1:]):
        raise Declined("more than the different values is needed")
    name = small.targets[0].target if isinstance(small, cst.Assign) and len(small.targets) == 1 else None
    if not isinstance(name, cst.Name):
        raise OtherForm("the different values have no name of their own")
    for one in nodes_named(context.function, name.value):
        if is_read(context, one) and not _is_asked(context, one) and context.enclosing(cst.Raise, one) is None:
            raise Declined(f"`{name.value}` is used for more than a check of its elements")
    made = cst.IfExp(compiling(context), copied(node.args[0].value), copied(node))
    return Edit({node: made}, [_ALL])


def _is_asked(context: RewriteContext, name: cst.Name) -> bool:
    """True if ``any`` or ``all`` is asked of comparisons with a value."""
    above = context.parent(name)
    while isinstance(above, _ELEMENTWISE):
        above = context.parent(above)
    call = context.parent(above) if isinstance(above, cst.Arg | cst.Attribute) else None
    # Code that the program does not reach has no facts.
    return isinstance(call, cst.Call) and context.plain(call.func).rpartition(".")[2] in ("any", "all")
