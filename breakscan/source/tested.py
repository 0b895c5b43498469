"""The tested expressions of an ast: those of which a statement, or another expression, asks whether they are true."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from breakscan.source.walking import walk


@dataclass(frozen=True, slots=True)
class Tested:
    """A tested expression. ``keeps_value`` says that its value is used, too: that of ``a`` in ``x = a or b``."""

    node: ast.expr
    keeps_value: bool


def tested_expressions(tree: ast.AST) -> Iterator[Tested]:
    """The tested expressions of ``if``, ``elif``, ``while``, ``assert``, ternaries, ``and``, ``or``, comprehensions and
    guards of ``case``.

    An ``and``, ``or`` or ``not`` that is tested counts as its operands: each of them decides. Constants do not count.
    """
    operands: set[int] = set()
    for node in walk(tree):
        for test in _tests(node):
            yield from _deciding(test, operands)
    for node in walk(tree):
        if isinstance(node, ast.BoolOp) and id(node) not in operands:
            # The last operand is only a value.
            yield from (Tested(value, True) for value in node.values[:-1] if _is_open(value))


def asks_for_compiling(test: ast.expr) -> bool:
    """Whether a test asks if the code is being compiled: the compiler decides its outcome."""
    names = (node for node in walk(test) if isinstance(node, ast.Attribute | ast.Name))
    return any(ast.unparse(name).endswith("_compiling") for name in names)


def _tests(node: ast.AST) -> list[ast.expr]:
    """The expressions that a node itself tests."""
    if isinstance(node, ast.If | ast.While | ast.IfExp | ast.Assert):
        return [node.test]
    if isinstance(node, ast.comprehension):
        return node.ifs
    if isinstance(node, ast.match_case) and node.guard is not None:
        return [node.guard]
    return []


def _deciding(test: ast.expr, operands: set[int]) -> Iterator[Tested]:
    """The expressions that decide a test. ``operands`` receives the ``and`` and ``or`` that are looked into."""
    if isinstance(test, ast.BoolOp):
        operands.add(id(test))
        for value in test.values:
            yield from _deciding(value, operands)
    elif isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        yield from _deciding(test.operand, operands)
    elif _is_open(test):
        yield Tested(test, False)


def _is_open(test: ast.expr) -> bool:
    """Whether the outcome is not fixed: that of a constant is, and the compiler of Python uses it."""
    return not isinstance(test, ast.Constant) and not (isinstance(test, ast.Name) and test.id == "__debug__")
