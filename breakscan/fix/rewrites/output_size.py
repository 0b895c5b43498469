"""``x.repeat_interleave(counts)`` → ``x.repeat_interleave(counts, output_size=n)`` if the sum is known.

The counts of a tensor's values add up to its number of elements, and the counts in a literal can be added.
"""

from __future__ import annotations

import libcst as cst

from breakscan.fix.support import build
from breakscan.fix.support import matchers as m
from breakscan.fix.support.assignments import defined, is_bound_once, origin
from breakscan.fix.support.context import Declined, Edit, RewriteContext
from breakscan.fix.support.difference import Effect, differs
from breakscan.fix.support.operators import called


def rewrite(context: RewriteContext) -> Edit:
    """The call with the length of its result."""
    node = context.node
    if not isinstance(node, cst.Call) or any(arg.star for arg in node.args):
        raise Declined("the arguments are not passed individually")
    _, method = called(context, node)
    named = {arg.keyword.value: arg.value for arg in node.args if arg.keyword is not None}
    positional = [arg.value for arg in node.args if arg.keyword is None]
    place = 0 if method is not None else 1
    repeats = named.get("repeats") or (positional[place] if len(positional) > place else None)
    if repeats is None and positional and method is None:
        repeats = positional[0]
    if repeats is None:
        raise Declined("the call does not pass `repeats`")
    size = build.argument(_sum(context, repeats), "output_size")
    said = f"`{context.code(repeats)}` must add up to it, and count each element by itself"
    made = node.deep_clone().with_changes(args=[*_open_ended(node), size])
    return Edit({node: made}, [differs(said, Effect.RAISES)])


def _open_ended(node: cst.Call) -> list[cst.Arg]:
    """The arguments, with a comma that another one may follow."""
    return [arg.deep_clone().with_changes(comma=_comma(arg)) for arg in node.args]


def _comma(arg: cst.Arg) -> cst.Comma:
    given = arg.comma
    return given.deep_clone() if isinstance(given, cst.Comma) else cst.Comma(whitespace_after=cst.SimpleWhitespace(" "))


def _sum(context: RewriteContext, repeats: cst.BaseExpression) -> cst.BaseExpression:
    """The sum of the repeats.  Declines if the code does not show it."""
    value = defined(context, repeats)
    counted = _unpacked(context, repeats) if isinstance(repeats, cst.Name) else None
    counted = counted or _counted(context, value)
    if counted is not None:
        if not isinstance(counted, cst.Name) or not is_bound_once(context, counted.value):
            raise Declined(f"`{context.code(counted)}` may be a different tensor here than where it is counted")
        return build.method(counted, "numel")
    elements = _written(context, value)
    if elements is not None:
        if len(elements) == 1:
            raise Declined("a single count is the count of every element")
        return build.expression(str(sum(elements)))
    raise Declined(f"the sum of `{context.code(repeats)}` is not known from shapes: pass `output_size`")


def _written(context: RewriteContext, value: cst.BaseExpression) -> list[int] | None:
    """The counts of ``torch.tensor([1, 2])``; None if they are not written out."""
    listed = m.Call(args=[m.Arg(m.List() | m.Tuple())])
    if not isinstance(value, cst.Call) or not m.matches(value, listed) or context.dotted(value.func) != "torch.tensor":
        return None
    found = [one.value for one in value.args[0].value.elements]  # type: ignore[attr-defined]
    return [one.evaluated_value for one in found] if all(isinstance(one, cst.Integer) for one in found) else None


def _counted(context: RewriteContext, value: cst.BaseExpression) -> cst.BaseExpression | None:
    """The tensor whose values a ``bincount`` counts."""
    if not isinstance(value, cst.Call):
        return None
    function, method = called(context, value)
    if any(arg.keyword is None or arg.keyword.value != "minlength" for arg in value.args[method is None :]):
        return None
    if method == "bincount" and isinstance(value.func, cst.Attribute):
        return value.func.value
    return value.args[0].value if function == "torch.bincount" and value.args else None


def _unpacked(context: RewriteContext, name: cst.Name) -> cst.BaseExpression | None:
    """The tensor of which a name holds the counts: ``values, name = torch.unique(tensor, return_counts=True)``."""
    anchor = origin(context, name).anchor
    small = anchor.body[0] if isinstance(anchor, cst.SimpleStatementLine) else None
    if not isinstance(small, cst.Assign) or not isinstance(small.targets[0].target, cst.Tuple | cst.List):
        return None
    names = [element.value for element in small.targets[0].target.elements]
    call = small.value
    if not isinstance(call, cst.Call) or not m.matches(names[-1], m.Name(name.value)):
        return None
    function, method = called(context, call)
    unique = ("unique", "unique_consecutive")
    if method not in unique and function not in ("torch.unique", "torch.unique_consecutive"):
        return None
    named = {arg.keyword.value for arg in call.args if arg.keyword is not None}
    # The counts come last.  With `dim`, rows are counted.
    if "return_counts" not in named or "dim" in named:
        return None
    if method is not None and isinstance(call.func, cst.Attribute):
        return call.func.value if len(named) == len(call.args) else None
    return call.args[0].value if len(named) == len(call.args) - 1 else None
