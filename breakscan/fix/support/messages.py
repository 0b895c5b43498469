"""The message of an exception or an assert as a constant text."""

from __future__ import annotations

import re

import libcst as cst

from breakscan.fix.support import matchers as m
from breakscan.fix.support.build import copied
from breakscan.fix.support.context import RewriteContext
from breakscan.fix.support.names import written
from breakscan.fix.support.walking import findall

_FIELD = re.compile(r"\{\{|\}\}|\{([^{}]*)\}")
_PERCENT = re.compile(r"%(%|[-#0 +]*\d*(?:\.\d+)?[a-zA-Z])")
_LONGEST = 30
UNKNOWN = "..."
"""The placeholder of a value whose code is too long for a message, or computes something."""


def constant_text(context: RewriteContext, node: cst.BaseExpression) -> cst.BaseExpression | None:
    """A constant text for a message, with each value replaced by its code.  None if the message is not a string."""
    if isinstance(node, cst.SimpleString):
        return None if "b" in node.prefix.lower() else copied(node)
    if isinstance(node, cst.FormattedString):
        return _formatted(context, node)
    if isinstance(node, cst.ConcatenatedString):
        left, right = constant_text(context, node.left), constant_text(context, node.right)
        if not isinstance(left, cst.SimpleString) or not isinstance(right, cst.SimpleString | cst.ConcatenatedString):
            return None
        return cst.ConcatenatedString(left, right, whitespace_between=node.whitespace_between.deep_clone())
    if isinstance(node, cst.BinaryOperation) and isinstance(node.operator, cst.Add):
        return _joined(constant_text(context, node.left), constant_text(context, node.right))
    if isinstance(node, cst.BinaryOperation) and isinstance(node.operator, cst.Modulo):
        given = node.right
        values = [one.value for one in given.elements] if isinstance(given, cst.Tuple) else [given]
        return _filled(context, node.left, _PERCENT, values)
    if isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute) and node.func.attr.value == "format":
        named = {one.keyword.value: one.value for one in node.args if one.keyword is not None}
        values = [one.value for one in node.args if one.keyword is None]
        return _filled(context, node.func.value, _FIELD, values, named)
    if isinstance(node, cst.Name) and (known := _of_the_file(context, node.value)) is not None:
        return known
    literal = context.fact(node).literal
    return cst.SimpleString(_quoted(literal)) if isinstance(literal, str) and context.fact(node).certain else None


def _of_the_file(context: RewriteContext, name: str) -> cst.BaseExpression | None:
    """The string that the file assigns to a name, if it is assigned only once."""
    if name in written(context.function) or list(written(context.tree.module)).count(name) != 1:
        return None
    found = [
        small.value
        for line in context.tree.module.body
        for small in (line.body if isinstance(line, cst.SimpleStatementLine) else ())
        if isinstance(small, cst.Assign) and name in written(small)
    ]
    return copied(found[0]) if len(found) == 1 and isinstance(found[0], cst.SimpleString) else None


def _joined(left: cst.BaseExpression | None, right: cst.BaseExpression | None) -> cst.BaseExpression | None:
    """One literal for two that are concatenated with ``+``."""
    if not isinstance(left, cst.SimpleString) or not isinstance(right, cst.SimpleString):
        return None
    if (left.prefix, left.quote) != (right.prefix, right.quote):
        return None
    return left.with_changes(value=left.value.removesuffix(left.quote) + right.value[len(right.prefix + right.quote) :])


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\r", "\\r") + '"'


def _shown(context: RewriteContext, node: cst.BaseExpression, quote: str) -> str:
    """The placeholder of a value: its code if that is short, computes nothing and fits between the quotes."""
    fact = context.fact(node)
    if findall(node, m.Call() | m.Comparison() | m.IfExp()):
        return UNKNOWN
    if isinstance(fact.literal, str | int | float) and fact.certain and isinstance(node, cst.Name | cst.Attribute):
        shown = str(fact.literal)
    else:
        shown = context.code(node)
    fits = len(shown) <= _LONGEST and not any(one in shown for one in ("\n", "\\", '"', "'", "{", "}", quote[0]))
    return shown if fits else UNKNOWN


def _formatted(context: RewriteContext, node: cst.FormattedString) -> cst.BaseExpression:
    text = ""
    for part in node.parts:
        if isinstance(part, cst.FormattedStringText):
            text += part.value.replace("{{", "{").replace("}}", "}")
        elif isinstance(part, cst.FormattedStringExpression):
            text += _shown(context, part.expression, node.end)
    prefix = node.start.removesuffix(node.end).replace("f", "").replace("F", "")
    return cst.SimpleString(prefix + node.end + text + node.end)


def _filled(
    context: RewriteContext,
    template: cst.BaseExpression,
    field: re.Pattern[str],
    values: list[cst.BaseExpression],
    named: dict[str, cst.BaseExpression] | None = None,
) -> cst.BaseExpression | None:
    """A template with the code of its values filled in."""
    text = constant_text(context, template)
    if text is None:
        return None
    rest = iter(values)

    def fill(match: re.Match[str], quote: str) -> str:
        if match[0] in ("{{", "}}", "%%"):
            return match[0][0]
        key = re.split(r"[.!:\[]", match[1])[0] if field is _FIELD else ""
        if key.isdigit():
            value = values[int(key)] if int(key) < len(values) else None
        elif key:
            value = (named or {}).get(key)
        else:
            value = next(rest, None)
        return UNKNOWN if value is None else _shown(context, value, quote)

    class Filler(cst.CSTTransformer):
        def leave_SimpleString(self, _: cst.SimpleString, new: cst.SimpleString) -> cst.SimpleString:
            inner = field.sub(lambda match: fill(match, new.quote), new.raw_value)
            return new.with_changes(value=new.prefix + new.quote + inner + new.quote)

    filled = text.visit(Filler())
    return filled if isinstance(filled, cst.BaseExpression) else None
