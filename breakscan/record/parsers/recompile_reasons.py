"""Reads the reasons for a recompile that torch's structured trace holds: one guard for each version that did not
fit."""

from __future__ import annotations

import ast
import builtins
import re

from breakscan.record.parsers.expressions import parse_expression
from breakscan.record.parsers.tracebacks import frames_of
from breakscan.record.records.guards import FailedGuard

_REASON = re.compile(r"(?P<id>!?\d+(?:/\d+)+): (?P<text>.*)", re.S)
_SCOPES = {"L", "G"}


def failed_guard(reason: str) -> FailedGuard:
    """The guard of a reason such as ``0/1: flag == 'a'  # …``, which the traced stack may follow."""
    found = _REASON.match(reason)
    compile_id, text = (found["id"], found["text"]) if found else ("", reason)
    first, _, rest = text.partition("\n")
    return FailedGuard(compile_id, _with_scope(first), 0, None, tuple(frames_of(rest)))


def _with_scope(text: str) -> str:
    """The guard over Dynamo's scopes, as hooks see it: in its reasons torch writes ``x`` for ``L['x']``.  A comment
    after it stays."""
    text = text.strip()
    expression = parse_expression(text)
    if expression is None:
        return text
    rest = text.encode()[expression.end_col_offset :].decode(errors="replace")
    _, comment, words = rest.partition("#")
    return f"{ast.unparse(_Scoped().visit(expression))}{f'  {comment}{words}' if comment else ''}"


class _Scoped(ast.NodeTransformer):
    def visit_Name(self, node: ast.Name) -> ast.expr:
        if node.id in _SCOPES or hasattr(builtins, node.id):
            return node
        return ast.Subscript(ast.Name("L", ast.Load()), ast.Constant(node.id), node.ctx)

    def visit_Call(self, node: ast.Call) -> ast.expr:
        node.args = [self.visit(argument) for argument in node.args]
        if not isinstance(node.func, ast.Name):
            node.func = self.visit(node.func)
        return node
