"""The form of a branch in the source, as ``rulebook.events`` names it."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator

Parents = Callable[[ast.AST], Iterator[tuple[ast.AST, ast.AST]]]
"""Gives each node that encloses a node, with the child that leads to it, from the inside out."""


def inner_tests(statement: ast.stmt) -> Iterator[ast.expr]:
    """The tests inside a statement that is not a branch itself."""
    if isinstance(statement, ast.If | ast.While | ast.Assert) or getattr(statement, "body", None):
        return
    for node in ast.walk(statement):
        if isinstance(node, ast.IfExp):
            yield node.test
        elif isinstance(node, ast.BoolOp):
            yield node
        elif isinstance(node, ast.comprehension):
            yield from node.ifs


def test_of(node: ast.expr | ast.stmt) -> ast.expr | ast.stmt:
    """The test of a statement that branches: Dynamo places a jump at its whole statement."""
    return node.test if isinstance(node, ast.If | ast.While | ast.Assert) else node


def form_of(node: ast.expr | ast.stmt, parents: Parents) -> str | None:
    """The form of the branch at a node; None if it is not one."""
    return _form_of_node(node, parents) or _form_around(node, parents)


def _form_of_node(node: ast.expr | ast.stmt, parents: Parents) -> str | None:
    """The form, where the node itself shows it."""
    if isinstance(node, ast.If | ast.While | ast.Assert):
        if isinstance(node.test, ast.BoolOp) and not isinstance(node, ast.Assert):
            return _word(node.test)
        return _form_of_test(node)
    if isinstance(node, ast.BoolOp):
        return _word(node)
    if isinstance(node, ast.IfExp):
        return "ternary"
    if isinstance(node, ast.Call) and any(isinstance(a, ast.GeneratorExp) and a.generators[0].ifs for a in node.args):
        return "filter"  # Dynamo places it at the call that draws from the generator
    if isinstance(node, ast.Compare) and len(node.ops) > 1:
        # Python tests the truth of `a < x` first in `a < x < b`.
        asserted = next((p for p, child in parents(node) if isinstance(p, ast.Assert) and child is p.test), None)
        return "and" if asserted is None else _form_of_test(asserted)
    if isinstance(node, ast.Compare) and isinstance(node.ops[0], ast.In | ast.NotIn):
        return "in"
    return None


def _form_around(node: ast.expr | ast.stmt, parents: Parents) -> str | None:
    """The form, where what encloses an operand shows it."""
    within: ast.AST = node
    for parent, child in parents(node):
        if isinstance(parent, ast.BoolOp):
            return _word(parent)
        if isinstance(parent, ast.If | ast.While | ast.Assert | ast.IfExp) and child is parent.test:
            return _form_of_test(parent)
        if isinstance(parent, ast.comprehension):
            return "filter" if child in parent.ifs else None
        if not (isinstance(parent, ast.UnaryOp) and isinstance(parent.op, ast.Not)):
            break
        within = parent
    if isinstance(within, ast.UnaryOp) and isinstance(within.op, ast.Not):
        return "not"
    return None


def _word(node: ast.BoolOp) -> str:
    return "and" if isinstance(node.op, ast.And) else "or"


def _form_of_test(node: ast.If | ast.While | ast.Assert | ast.IfExp) -> str:
    if isinstance(node, ast.While):
        return "while"
    if isinstance(node, ast.IfExp):
        return "ternary"
    if isinstance(node, ast.Assert):
        return "assert-message" if _has_formatted_message(node) else "assert"
    only_raises = not node.orelse and isinstance(node.body[-1], ast.Raise) and len(node.body) <= 2
    return "guard" if only_raises else "if"


def _has_formatted_message(node: ast.stmt) -> bool:
    """Whether the message of an assert is anything but a constant string."""
    if not isinstance(node, ast.Assert) or node.msg is None:
        return False
    return not (isinstance(node.msg, ast.Constant) and isinstance(node.msg.value, str))
