"""``format(t, spec)`` and ``"%.3f" % t`` → ``f"{t:spec}"``, which Dynamo evaluates after the graph has run.

The text is the same: ``format`` and an f-string call the same method, and ``%.3f`` reads the number from a tensor as
``:.3f`` does.  ``%s`` is not rewritten, because it shows a 0-d tensor as ``tensor(...)``.
"""

from __future__ import annotations

import re

import libcst as cst

from breakscan.fix.support.context import RewriteContext
from breakscan.fix.support.edit import Declined, Edit

_FIELD = re.compile(r"%(%|(?P<spec>\d*(?:\.\d+)?[feEgG])|.)")


def rewrite(context: RewriteContext) -> Edit:
    """The text as an f-string."""
    node = context.node
    if isinstance(node, cst.Call):
        return _of_format(context, node)
    if isinstance(node, cst.BinaryOperation) and isinstance(node.operator, cst.Modulo):
        return _of_percent(context, node)
    raise Declined("this is not string formatting")


def _of_format(context: RewriteContext, node: cst.Call) -> Edit:
    if any(one.keyword is not None or one.star for one in node.args) or not 1 <= len(node.args) <= 2:
        raise Declined("`format` is not called with a value and a format specification")
    spec = ""
    if len(node.args) == 2:
        given = node.args[1].value
        if not isinstance(given, cst.SimpleString) or set(given.raw_value) & set("{}\\'\"") or given.prefix:
            raise Declined(f"`{context.code(given)}` is not a plain string literal")
        spec = given.raw_value
    return Edit({node: _text(context, [(node.args[0].value, spec)], ["", ""])}, keeps_operations=True)


def _of_percent(context: RewriteContext, node: cst.BinaryOperation) -> Edit:
    template = node.left
    if not isinstance(template, cst.SimpleString) or template.prefix or set(template.raw_value) & set("{}\\'\""):
        raise Declined(f"`{context.code(template)}` is not a plain string literal")
    given = node.right
    values = [one.value for one in given.elements] if isinstance(given, cst.Tuple) else [given]
    rest, fields, texts = iter(values), [], [""]
    end = 0
    for match in _FIELD.finditer(template.raw_value):
        texts[-1] += template.raw_value[end : match.start()]
        end = match.end()
        if match[1] == "%":
            texts[-1] += "%"
            continue
        value = next(rest, None)
        if value is None or match["spec"] is None or isinstance(value, cst.StarredElement):
            raise Declined(f"`{match[0]}` has no equivalent in an f-string")
        fact = context.fact(value)
        if fact.kind == "tensor" and not fact.zero_dim:
            raise Declined(f"`{context.code(value)}` is not known to have a single element")
        if fact.kind != "tensor" and not fact.is_number:
            raise Declined(f"`{context.code(value)}` is not known to be a number")
        fields.append((value, match["spec"]))
        texts.append("")
    texts[-1] += template.raw_value[end:]
    if next(rest, None) is not None:
        raise Declined("there are more values than fields")
    return Edit({node: _text(context, fields, texts)}, keeps_operations=True)


def _text(
    context: RewriteContext, fields: list[tuple[cst.BaseExpression, str]], texts: list[str]
) -> cst.BaseExpression:
    made = 'f"' + texts[0]
    for (value, spec), text in zip(fields, texts[1:], strict=True):
        code = context.code(value)
        if set(code) & set("\n\\\"'{}!:=") or isinstance(value, cst.Lambda | cst.NamedExpr):
            raise Declined(f"`{code}` cannot be written in an f-string")
        made += "{" + code + (f":{spec}" if spec else "") + "}" + text
    return cst.parse_expression(made + '"')
