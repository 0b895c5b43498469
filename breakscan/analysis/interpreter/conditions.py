"""Tests in words, as findings name the condition that they hold under."""

from __future__ import annotations

import ast


def in_words(test: ast.expr, outcome: bool) -> str:
    """The condition that a test has an outcome."""
    if not outcome and isinstance(test, ast.Compare) and len(test.ops) == 1 and type(test.ops[0]) in _OPPOSITE:
        test, outcome = ast.Compare(test.left, [_OPPOSITE[type(test.ops[0])]()], test.comparators), True
    return f"`{ast.unparse(test)}`" if outcome else f"not `{ast.unparse(test)}`"


_OPPOSITE: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
}
