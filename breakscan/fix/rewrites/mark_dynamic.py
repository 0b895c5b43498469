"""``compiled(x)`` with a changing size → ``torch._dynamo.maybe_mark_dynamic(x, 0)`` before it.

The first compilation then makes that size dynamic, and there is no second one.  Unlike ``mark_dynamic``, it requires
nothing: if the code needs the exact size, nothing changes.  The mark is an attribute of the tensor, which stays there:
copies and pickles contain it, and other compiled functions see it.
"""

from __future__ import annotations

from itertools import takewhile

import libcst as cst

from breakscan.fix.support import matchers as m
from breakscan.fix.support.build import assignment, copied, statements
from breakscan.fix.support.context import RewriteContext
from breakscan.fix.support.difference import Effect, differs
from breakscan.fix.support.edit import Declined, Edit
from breakscan.fix.support.names import written
from breakscan.fix.support.purity import why_not_pure
from breakscan.fix.support.walking import findall

PART = "part"


def rewrite(context: RewriteContext) -> Edit:
    """The mark, in front of the statement with the call."""
    value = context.node
    if not isinstance(value, cst.BaseExpression) or not isinstance(context.parent(value), cst.Arg):
        raise Declined("the tensor is not an argument of a call")
    line = context.line()
    if any(isinstance(one, cst.Lambda | cst.BaseComp | cst.IfExp | cst.BooleanOperation) for one in context.around()):
        raise Declined("the call is in an expression that may not run it")
    size = _size(value if not isinstance(value, cst.Name) else _made(context, value.value))
    if size is None:
        raise Declined("it is not known which of its sizes changes")
    if not context.fact(value).is_tensor or not context.fact(value).certain:
        raise Declined(f"`{context.code(value)}` is not known to be a tensor")
    if not isinstance(value, cst.Name):
        _check_order(context, value)
    marker = context.code(context.imported("torch._dynamo.maybe_mark_dynamic"))
    lines = [one.deep_clone() for one in line.leading_lines]
    stays = [differs(f"the mark stays on `{context.code(value)}`, in copies and pickles of it", Effect.STATE)]
    if isinstance(value, cst.Name):
        (mark,) = statements(f"{marker}({value.value}, {size})")
        call = line.deep_clone().with_changes(leading_lines=())
        return Edit({line: [mark.with_changes(leading_lines=lines), call]}, stays)
    if PART in written(context.tree.module):
        raise Declined(f"the name `{PART}` is already used")
    (mark,) = statements(f"{marker}({PART}, {size})")
    first = assignment(cst.Name(PART), copied(value)).with_changes(leading_lines=lines)
    call = cst.ensure_type(line.deep_replace(value, cst.Name(PART)), cst.SimpleStatementLine)
    return Edit({line: [first, mark, call.with_changes(leading_lines=())]}, stays)


def _check_order(context: RewriteContext, value: cst.BaseExpression) -> None:
    """Declines if it matters that an argument is computed before those in front of it."""
    call = cst.ensure_type(context.parent(context.parent(value) or value), cst.Call)
    for arg in takewhile(lambda one: one.value is not value, call.args):
        if (reason := why_not_pure(context, arg.value)) is not None:
            raise Declined(f"the tensor would be computed before the other arguments, and {reason}")


def _made(context: RewriteContext, name: str) -> cst.BaseExpression | None:
    """The value that the loop around the call assigns to a name."""
    loop = next((one for one in context.around() if isinstance(one, cst.For | cst.While)), None)
    found = findall(loop, m.Assign([m.AssignTarget(m.Name(name))])) if loop is not None else []
    return cst.ensure_type(found[0], cst.Assign).value if len(found) == 1 else None


def _size(value: cst.BaseExpression | None) -> int | None:
    """The dimension whose size a slice or ``torch.cat`` changes."""
    if isinstance(value, cst.Subscript):
        changing = [
            position
            for position, element in enumerate(value.slice)
            if isinstance(element.slice, cst.Slice)
            and any(bound is not None and not _constant(bound) for bound in (element.slice.lower, element.slice.upper))
        ]
        plain = all(isinstance(element.slice, cst.Slice) for element in value.slice)
        return changing[0] if plain and len(changing) == 1 else None
    if isinstance(value, cst.Call) and m.matches(value.func, m.Attribute(attr=m.Name("cat"))):
        given = [arg.value for arg in value.args[1:]]
        if not given:
            return 0
        if len(given) == 1 and isinstance(given[0], cst.Integer):
            return int(given[0].value)
    return None


def _constant(node: cst.BaseExpression) -> bool:
    return isinstance(node, cst.Integer) or (
        isinstance(node, cst.UnaryOperation) and isinstance(node.expression, cst.Integer)
    )
