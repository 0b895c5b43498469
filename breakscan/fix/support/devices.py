"""Whether the tensors that one operator takes are on one device.  Python reads the truth of each wherever it is."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import libcst as cst

from breakscan.fix.support.context import RewriteContext
from breakscan.fix.support.difference import ShowsOnly, assumes
from breakscan.model.facts import Fact, Symbol

TESTS_APART = assumes("all tests must be on the same device", only=ShowsOnly.DEVICES)
"""For tests that become one tensor, and that :func:`tests_on_one_device` does not know to be on one device."""


def on_one_device(one: Fact, other: Fact) -> bool:
    """Whether two tensors are known to be on the same device."""
    return one.tensor is not None and other.tensor is not None and one.tensor.device == other.tensor.device


def device_of_all(context: RewriteContext, nodes: Iterable[cst.BaseExpression]) -> Symbol | None:
    """A value on whose device all tensors are; None if that is not known."""
    found = {tensor.device if (tensor := context.fact(node).tensor) is not None else None for node in nodes}
    return found.pop() if len(found) == 1 else None


def joined_tests(context: RewriteContext, test: cst.BaseExpression) -> Iterator[cst.BaseExpression]:
    """The tensors that a test asks: what ``and``, ``or`` and ``not`` combine, and what a chain compares."""
    if isinstance(test, cst.BooleanOperation):
        yield from joined_tests(context, test.left)
        yield from joined_tests(context, test.right)
    elif isinstance(test, cst.UnaryOperation) and isinstance(test.operator, cst.Not):
        yield from joined_tests(context, test.expression)
    elif isinstance(test, cst.Comparison) and len(test.comparisons) > 1:
        sides = (test.left, *(one.comparator for one in test.comparisons))
        yield from (side for side in sides if context.fact(side).is_tensor)
    else:
        yield test


def tests_on_one_device(context: RewriteContext, tests: Iterable[cst.BaseExpression]) -> bool:
    """Whether all tensors that some tests ask are known to be on one device, or there is only one."""
    asked = [one for test in tests for one in joined_tests(context, test)]
    return len(asked) < 2 or device_of_all(context, asked) is not None
