"""``print("loss", t)`` → ``torch._higher_order_ops.print("loss {}", t)``, which prints inside the graph.

Requires torch 2.11.  The line is also printed in compiled code; a 0-d tensor is printed as its number, and a tensor
that requires a gradient is printed without its `grad_fn`.
"""

from __future__ import annotations

import libcst as cst

from breakscan.fix.support.build import copied
from breakscan.fix.support.context import RewriteContext
from breakscan.fix.support.difference import Effect, differs
from breakscan.fix.support.edit import Declined, Edit, OtherForm

_SINCE = (2, 11)


_SHOWN = differs("0-d tensors are printed as numbers, and tensors without their `grad_fn`", Effect.OUTPUT)


def rewrite(context: RewriteContext) -> Edit:
    """The operator that prints, with a text whose fields the values fill."""
    node = context.node
    if not isinstance(node, cst.Call) or context.dotted(node.func) != "print":
        raise OtherForm("this is not a call of `print`")
    if tuple(int(one) for one in context.torch_version.split(".")[:2]) < _SINCE:
        raise Declined(f"torch {context.torch_version} has no operator that prints")
    if not isinstance(context.parent(node), cst.Expr):
        raise Declined("the result of `print` is used")
    if not node.args:
        raise Declined("`print` has no arguments")
    template = ""
    values: list[cst.BaseExpression] = []
    for arg in node.args:
        if arg.keyword is not None or arg.star:
            raise Declined(f"`{context.code(arg).rstrip(', ')}` is a keyword or starred argument")
        value = arg.value
        template += " " if template else ""
        if isinstance(value, cst.SimpleString) and not value.prefix and '"' not in value.raw_value:
            template += value.raw_value.replace("{", "{{").replace("}", "}}")
        elif isinstance(value, cst.FormattedString):
            template += _fields(context, value, values)
        else:
            template += _field(context, value, values)
    args = [cst.Arg(cst.SimpleString(f'"{template}"')), *(cst.Arg(copied(one)) for one in values)]
    made = cst.Call(context.imported("torch._higher_order_ops.print"), args)
    return Edit({node: made}, [_SHOWN])


def _fields(context: RewriteContext, text: cst.FormattedString, values: list[cst.BaseExpression]) -> str:
    made = ""
    for part in text.parts:
        if isinstance(part, cst.FormattedStringText):
            if '"' in part.value:
                raise Declined("the text contains quotes")
            made += part.value
        elif isinstance(part, cst.FormattedStringExpression):
            if part.format_spec is not None or part.conversion is not None or part.equal is not None:
                raise Declined(f"`{context.code(part.expression)}` has a format specification or conversion")
            made += _field(context, part.expression, values)
    return made


def _field(context: RewriteContext, value: cst.BaseExpression, values: list[cst.BaseExpression]) -> str:
    fact = context.fact(value)
    if not fact.is_tensor and fact.literal is None:
        raise Declined(f"`{context.code(value)}` is not known to be a tensor or a constant")
    values.append(value)
    return "{}"
