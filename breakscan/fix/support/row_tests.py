"""Tests for whether a mask selects rows."""

from __future__ import annotations

import libcst as cst

from breakscan.fix.support import matchers as m
from breakscan.fix.support.assignments import defined
from breakscan.fix.support.called import called
from breakscan.fix.support.context import RewriteContext
from breakscan.fix.support.rows import Rows
from breakscan.fix.support.wording import plain

_FIRST = m.SubscriptElement(m.Index(m.Integer("0")))
_SIZES = m.Call(m.Attribute(attr=m.Name("numel")), []) | m.Call(
    m.Attribute(attr=m.Name("size")), [m.Arg(m.Integer("0"))]
)
_SHAPE = m.Subscript(m.Attribute(attr=m.Name("shape")), [_FIRST])
_COMPARED = {
    (cst.Equal, 0): False,
    (cst.LessThan, 1): False,
    (cst.LessThanEqual, 0): False,
    (cst.GreaterThan, 0): True,
    (cst.NotEqual, 0): True,
    (cst.GreaterThanEqual, 1): True,
}
"""What comparing a number of rows with a number tells."""


def tells_rows(context: RewriteContext, rows: Rows, test: cst.BaseExpression) -> bool | None:
    """Whether a test is for rows (True) or for their absence (False); None if it tests something else."""
    if isinstance(test, cst.UnaryOperation) and isinstance(test.operator, cst.Not):
        inner = tells_rows(context, rows, test.expression)
        return None if inner is None else not inner
    if isinstance(test, cst.UnaryOperation) and isinstance(test.operator, cst.BitInvert):
        return False if _is_any(context, rows, test.expression) else None
    if isinstance(test, cst.Comparison) and len(test.comparisons) == 1:
        side = test.comparisons[0]
        if not _is_count(context, rows, test.left) or not isinstance(side.comparator, cst.Integer):
            return None
        return _COMPARED.get((type(side.operator), side.comparator.evaluated_value))
    if isinstance(test, cst.Call):
        function, method = called(context, test)
        if method == "item" and isinstance(test.func, cst.Attribute):
            return tells_rows(context, rows, test.func.value)
        if function == "builtins.bool" and len(test.args) == 1:
            return tells_rows(context, rows, test.args[0].value)
    return True if _is_any(context, rows, test) or _is_count(context, rows, test) else None


def _is_any(context: RewriteContext, rows: Rows, node: cst.BaseExpression) -> bool:
    return isinstance(node, cst.Call) and _reduces(context, rows, node, "any")


def _reduces(context: RewriteContext, rows: Rows, call: cst.Call, name: str) -> bool:
    """Whether a call is a reduction of the mask that selects the rows."""
    function, method = called(context, call)
    if method == name and isinstance(call.func, cst.Attribute) and not call.args:
        return rows.is_mask and plain(context, call.func.value) == rows.index
    is_function = function == f"torch.{name}" and len(call.args) == 1
    return is_function and rows.is_mask and plain(context, call.args[0].value) == rows.index


def _is_count(context: RewriteContext, rows: Rows, node: cst.BaseExpression) -> bool:
    """Whether an expression is the number of selected rows."""
    node = defined(context, node)
    if isinstance(node, cst.Call):
        function, method = called(context, node)
        if method == "item" and isinstance(node.func, cst.Attribute):
            return _is_count(context, rows, node.func.value)
        if function in ("builtins.int", "builtins.len") and len(node.args) == 1:
            counts = _is_count if function == "builtins.int" else _is_index
            return counts(context, rows, node.args[0].value)
        if m.matches(node, _SIZES):
            return _is_index(context, rows, cst.ensure_type(node.func, cst.Attribute).value)
        return _reduces(context, rows, node, "sum") or _reduces(context, rows, node, "count_nonzero")
    if m.matches(node, _SHAPE):
        return _is_index(
            context, rows, cst.ensure_type(cst.ensure_type(node, cst.Subscript).value, cst.Attribute).value
        )
    return False


def _is_index(context: RewriteContext, rows: Rows, node: cst.BaseExpression) -> bool:
    """Whether an expression has as many elements as there are rows."""
    return not rows.is_mask and plain(context, node) in (rows.index, rows.column)
