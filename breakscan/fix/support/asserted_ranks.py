"""How many dimensions the code asserts that a tensor has.  Contradicts an assumption, but proves nothing: with
``python -O``, no assert runs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import libcst as cst

from breakscan.fix.support import matchers as m
from breakscan.fix.support.build import and_list
from breakscan.fix.support.context import RewriteContext

_SIZES = m.Attribute(attr=m.Name("shape")) | m.Call(m.Attribute(attr=m.Name("size")), args=[])
_ONE_SIZE = m.Subscript(m.Attribute(attr=m.Name("shape")), [m.SubscriptElement(m.Index(m.Integer()))])
_LEAVES = m.SimpleStatementLine(body=[m.AtLeastN(m.Return() | m.Raise() | m.Continue() | m.Break(), n=1)])
_OPPOSITES: dict[type[cst.BaseCompOp], type[cst.BaseCompOp]] = {
    cst.Equal: cst.NotEqual,
    cst.NotEqual: cst.Equal,
    cst.LessThan: cst.GreaterThanEqual,
    cst.GreaterThanEqual: cst.LessThan,
    cst.GreaterThan: cst.LessThanEqual,
    cst.LessThanEqual: cst.GreaterThan,
}
_MIRRORED: dict[type[cst.BaseCompOp], type[cst.BaseCompOp]] = {
    cst.LessThan: cst.GreaterThan,
    cst.LessThanEqual: cst.GreaterThanEqual,
    cst.GreaterThan: cst.LessThan,
    cst.GreaterThanEqual: cst.LessThanEqual,
}


@dataclass(frozen=True, slots=True)
class AssertedRank:
    """Bounds of a number of dimensions, and numbers that it is not."""

    least: int = 0
    most: int | None = None
    excluded: frozenset[int] = frozenset()

    def allows(self, number: int) -> bool:
        return self.least <= number and (self.most is None or number <= self.most) and number not in self.excluded


def asserted_rank(context: RewriteContext, node: cst.BaseExpression) -> AssertedRank:
    """What the code checks of the number of dimensions of an expression's value, before it."""
    facts = context.fact(node).tensor
    least, most, excluded = 0, None, set()
    if facts is None:
        return AssertedRank()
    for tensor, operator, number in _checked(context, node):
        checked = context.fact(tensor).tensor if context.tree.holds(tensor) else None
        same = checked.rank.over & checked.rank.under if checked is not None else frozenset()
        if same & facts.rank.over and operator in (cst.Equal, cst.GreaterThan, cst.GreaterThanEqual):
            least = max(least, number + (operator is cst.GreaterThan))
        if same & facts.rank.under and operator in (cst.Equal, cst.LessThan, cst.LessThanEqual):
            bound = number - (operator is cst.LessThan)
            most = bound if most is None else min(most, bound)
        if same & facts.rank.over & facts.rank.under and operator is cst.NotEqual:
            excluded.add(number)
    return AssertedRank(least, most, frozenset(excluded))


_Check = tuple[cst.BaseExpression, type[cst.BaseCompOp], int]
"""A tensor, and how its number of dimensions compares with a number."""


def _checked(context: RewriteContext, node: cst.BaseExpression) -> Iterator[_Check]:
    inner: cst.CSTNode = node
    for above in context.around(node):
        if isinstance(above, cst.If) and inner is above.body:
            yield from _holds(above.test)
        if isinstance(above, cst.IndentedBlock):
            for one in above.body:
                if one is inner:
                    break
                yield from _of_statement(context, one)
        if isinstance(above, cst.FunctionDef | cst.Lambda):
            return
        inner = above


def _of_statement(context: RewriteContext, statement: cst.BaseStatement) -> Iterator[_Check]:
    if isinstance(statement, cst.If):
        if statement.orelse is None and m.matches(statement.body.body[-1], _LEAVES):
            yield from _fails(statement.test)
        return
    for small in statement.body if isinstance(statement, cst.SimpleStatementLine) else ():
        if isinstance(small, cst.Assert):
            yield from _holds(small.test)
        elif isinstance(small, cst.Expr) and isinstance(small.value, cst.Call) and small.value.args:
            if context.dotted(small.value.func) == "torch._check":
                yield from _holds(small.value.args[0].value)
        elif isinstance(small, cst.Assign) and m.matches(small.value, _SIZES):
            target = small.targets[0].target
            if isinstance(target, cst.Tuple):
                sizes = small.value.func if isinstance(small.value, cst.Call) else small.value
                starred = any(isinstance(one, cst.StarredElement) for one in target.elements)
                number = len(target.elements) - starred
                yield (
                    cst.ensure_type(sizes, cst.Attribute).value,
                    cst.GreaterThanEqual if starred else cst.Equal,
                    number,
                )

        elif isinstance(small, cst.Assign) and m.matches(small.value, _ONE_SIZE):
            sizes = cst.ensure_type(small.value, cst.Subscript)
            index = cst.ensure_type(cst.ensure_type(sizes.slice[0].slice, cst.Index).value, cst.Integer)
            tensor = cst.ensure_type(sizes.value, cst.Attribute).value
            yield tensor, cst.GreaterThan, index.evaluated_value


def _holds(test: cst.BaseExpression) -> Iterator[_Check]:
    for one in and_list(test):
        if isinstance(one, cst.Comparison) and len(one.comparisons) == 1:
            yield from _compared(one, opposite=False)


def _fails(test: cst.BaseExpression) -> Iterator[_Check]:
    if isinstance(test, cst.BooleanOperation) and isinstance(test.operator, cst.Or):
        yield from _fails(test.left)
        yield from _fails(test.right)
    elif isinstance(test, cst.UnaryOperation) and isinstance(test.operator, cst.Not):
        yield from _holds(test.expression)
    elif isinstance(test, cst.Comparison) and len(test.comparisons) == 1:
        yield from _compared(test, opposite=True)


def _compared(test: cst.Comparison, *, opposite: bool) -> Iterator[_Check]:
    left, target = test.left, test.comparisons[0]
    right, operator = target.comparator, type(target.operator)
    if isinstance(left, cst.Integer):
        left, right, operator = right, left, _MIRRORED.get(operator, operator)
    tensor = _counted(left)
    if tensor is None:
        return
    if operator in (cst.In, cst.NotIn) and isinstance(right, cst.Tuple | cst.List | cst.Set):
        numbers = [one.value.evaluated_value for one in right.elements if isinstance(one.value, cst.Integer)]
        if (operator is cst.NotIn) is opposite and numbers and len(numbers) == len(right.elements):
            yield tensor, cst.GreaterThanEqual, min(numbers)
            yield tensor, cst.LessThanEqual, max(numbers)
    elif isinstance(right, cst.Integer) and operator in _OPPOSITES:
        yield tensor, _OPPOSITES[operator] if opposite else operator, right.evaluated_value


def _counted(node: cst.BaseExpression) -> cst.BaseExpression | None:
    """The tensor whose dimensions an expression counts: ``x.dim()``, ``x.ndim``, ``len(x.shape)``."""
    if m.matches(node, m.Attribute(attr=m.Name("ndim"))):
        return cst.ensure_type(node, cst.Attribute).value
    if not isinstance(node, cst.Call):
        return None
    if m.matches(node, m.Call(m.Attribute(attr=m.Name("dim") | m.Name("ndimension")), args=[])):
        return cst.ensure_type(node.func, cst.Attribute).value
    if m.matches(node, m.Call(m.Name("len"), args=[m.Arg(_SIZES)])):
        sizes = node.args[0].value
        sizes = sizes.func if isinstance(sizes, cst.Call) else sizes
        return cst.ensure_type(sizes, cst.Attribute).value
    return None
