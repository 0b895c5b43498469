"""Conditions that tests of the program set."""

from __future__ import annotations

import ast

from breakscan.model.findings import Condition, ConditionKind


def has_outcome(test: ast.expr, outcome: bool) -> Condition:
    """The condition that a test has an outcome; one comparison is turned round rather than negated."""
    if not outcome and isinstance(test, ast.Compare) and len(test.ops) == 1 and type(test.ops[0]) in _OPPOSITE:
        test, outcome = ast.Compare(test.left, [_OPPOSITE[type(test.ops[0])]()], test.comparators), True
    return Condition(ConditionKind.TEST, ast.unparse(test), outcome)


_OPPOSITE: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
}
