"""Splits the call of a new statement over several lines if it is too long for one."""

from __future__ import annotations

import libcst as cst

from breakscan.rewrite_support.context import RewriteContext

SHORTEST, LONGEST = 88, 120


def fitted(line: cst.SimpleStatementLine, context: RewriteContext, indent: int) -> cst.SimpleStatementLine:
    """A statement; if it is too long, the call that it is, assigns or returns is split over several lines.

    ``indent`` is its indentation in columns.
    """
    text = context.code(line.with_changes(leading_lines=())).rstrip("\n")
    most = min(max(SHORTEST, *(len(one) for one in context.tree.module.code.splitlines())), LONGEST)
    small = line.body[0]
    if indent + max(map(len, text.splitlines())) <= most or not isinstance(small, cst.Assign | cst.Expr | cst.Return):
        return line
    if not isinstance(small.value, cst.Call):
        return line
    return line.with_changes(body=[small.with_changes(value=_spread(small.value, context))])


def _spread(call: cst.Call, context: RewriteContext) -> cst.Call:
    """A call with one argument per line; if its only argument is also a call, the arguments of that call."""
    only = call.args[0] if len(call.args) == 1 else None
    if only is not None and isinstance(only.value, cst.Call):
        return call.with_changes(args=[only.with_changes(value=_spread(only.value, context))])
    inside, behind = _newline(context.tree.module.default_indent), _newline("")
    last = len(call.args) - 1
    arguments = [
        arg.with_changes(comma=cst.Comma(whitespace_after=behind if place == last else inside))
        for place, arg in enumerate(call.args)
    ]
    return call.with_changes(args=arguments, whitespace_before_args=inside)


def _newline(indent: str) -> cst.ParenthesizedWhitespace:
    return cst.ParenthesizedWhitespace(indent=True, last_line=cst.SimpleWhitespace(indent))
