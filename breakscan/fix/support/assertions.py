"""Tests of asserts in the form that Dynamo can put into the graph: Python conditions first, then a single tensor."""

from __future__ import annotations

import libcst as cst

from breakscan.fix.support.build import operand, operand_of_and
from breakscan.fix.support.checks import Check, asks_tensor, check_of, is_membership, not_python, operands
from breakscan.fix.support.context import RewriteContext
from breakscan.fix.support.difference import EXCEPTIONS, ShowsOnly, differs
from breakscan.fix.support.edit import Declined, Edit

FAILURE = differs(
    "in compiled code, a failure is a RuntimeError, or a device-side assert on CUDA",
    *EXCEPTIONS,
    only=ShowsOnly.COMPILED,
)


def asserted_test(context: RewriteContext, test: cst.BaseExpression) -> tuple[cst.BaseExpression, Check] | None:
    """A test that compiles in an assert, with how it was read, or None if the test already compiles."""
    if _is_one_tensor(context, test):
        return None
    if isinstance(test, cst.BooleanOperation):
        parts = operands(test)
        asked = [one for one in parts if asks_tensor(context, one)]
        if asked != parts[len(parts) - len(asked) :]:
            raise Declined("a tensor is tested before a Python value: test the Python value first")
        if len(asked) == 1 and _is_one_tensor(context, asked[0]):
            return None
    check = check_of(context, test)
    made = check.tensor
    for when in reversed(check.when):
        # `a and (b or c)` keeps its parentheses; operands of the same operator need none.
        made = operand(made) if isinstance(made, cst.BooleanOperation) else made
        left = not_python(when.test) if when.otherwise else when.test
        made = cst.BooleanOperation(operand_of_and(left), cst.Or() if when.otherwise else cst.And(), made)
    made = _flat(made)
    if test.lpar and "\n" in context.code(test):
        made = made.with_changes(
            lpar=[one.deep_clone() for one in test.lpar], rpar=[one.deep_clone() for one in test.rpar]
        )
    return made, check


def edit_of_assert(context: RewriteContext, assertion: cst.Assert) -> Edit:
    """The assert around the site with a test that compiles."""
    found = asserted_test(context, assertion.test)
    if found is None:
        raise Declined("the test is already a single tensor")
    test, check = found
    return Edit({assertion.test: test}, [FAILURE, *check.differences()])


def _flat(test: cst.BaseExpression) -> cst.BaseExpression:
    """``a and b and c`` for ``a and (b and c)``."""
    if isinstance(test, cst.BooleanOperation) and isinstance(test.right, cst.BooleanOperation):
        right = cst.ensure_type(_flat(test.right), cst.BooleanOperation)
        if type(right.operator) is type(test.operator):
            inner = cst.BooleanOperation(test.left, test.operator, right.left)
            return cst.BooleanOperation(inner, right.operator, right.right)
    return test


def _is_one_tensor(context: RewriteContext, test: cst.BaseExpression) -> bool:
    if isinstance(test, cst.BooleanOperation) or (
        isinstance(test, cst.UnaryOperation) and isinstance(test.operator, cst.Not)
    ):
        return False
    if isinstance(test, cst.Comparison) and (len(test.comparisons) > 1 or is_membership(context, test)):
        return False
    return context.fact(test).kind == "tensor"
