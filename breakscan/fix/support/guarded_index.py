"""An index that a test guards, as in ``x[i] if i >= 0 else y``, so that it is in range if its side is not chosen.

``x[i]`` becomes ``x[i.clamp(min=0)[None]].squeeze(0)``.  The element that is chosen is the same, because the test holds
for it, and an index with a dimension is not read into Python.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import libcst as cst

from breakscan.fix.support import matchers as m
from breakscan.fix.support.build import call, expression, operand
from breakscan.fix.support.context import RewriteContext
from breakscan.fix.support.difference import Difference, Effect, assumes, differs
from breakscan.fix.support.names import read, written
from breakscan.fix.support.one_element import (
    OUT_OF_RANGE,
    is_no_mask,
    squeezed,
    why_on_other_device,
    with_dimension,
)
from breakscan.fix.support.walking import findall

_NOT_NEGATIVE = (("{} >= 0", True), ("{} > -1", True), ("0 <= {}", True), ("{} < 0", False), ("0 > {}", False))
"""Tests, and the outcome with which the index is not negative."""
_LAST = ("{}.shape[0] - 1", "{}.size(0) - 1", "len({}) - 1")
"""The last index of a tensor."""
_INDEX = m.Name() | m.Attribute() | m.BinaryOperation()
_WITH_DIMENSION = m.Subscript(value=_INDEX, slice=[m.SubscriptElement(m.Index(m.Name("None")))])


@dataclass(frozen=True, slots=True)
class Guarded:
    """``made`` is the new code of a side, ``nodes`` are the subscripts of the old one that are now in range."""

    made: cst.BaseExpression
    nodes: frozenset[cst.CSTNode]
    differences: tuple[Difference, ...]


def guarded(context: RewriteContext, side: cst.BaseExpression) -> Guarded | None:
    """The code of a side in which each index that its test guards is in range; None if it has no such index."""
    tests = [*_tests_around(context, side)]
    indices: dict[cst.CSTNode, cst.BaseExpression] = {}
    differences = []
    for node in findall(side, m.Subscript(slice=[m.SubscriptElement(m.Index(_INDEX | _WITH_DIMENSION))])):
        assert isinstance(node, cst.Subscript)
        inner = _index(node)
        facts = context.fact(node.value), context.fact(inner)
        bound = _bound(context, node.value, inner, tests)
        if bound is None or not all(one.is_tensor and not one.optional for one in facts):
            continue
        indices[node] = with_dimension(call(cst.Attribute(operand(inner), cst.Name("clamp")), **bound))
        said = f"`{context.code(node.value)}` is read even if it has no elements, which raises an IndexError"
        differences += [OUT_OF_RANGE, differs(said, Effect.RAISES)]
        if "max" in bound:
            said = f"`{context.code(node.value)}` is read at its end if `{context.code(inner)}` is out of range"
            differences.append(differs(said, Effect.NO_LONGER_RAISES, Effect.VALUES))
        if context.fact(inner).dtype != "int" and not is_no_mask(context, inner):
            differences.append(assumes(f"`{context.code(inner)}` must be a tensor of integers, not a mask"))
        if (device := why_on_other_device(context, node.value, inner)) is not None:
            differences.append(device)
    if not indices:
        return None
    made = side.visit(_Replacer(indices))
    assert isinstance(made, cst.BaseExpression)
    return Guarded(made, frozenset(indices), tuple(dict.fromkeys(differences)))


def _index(node: cst.Subscript) -> cst.BaseExpression:
    """``i`` of ``x[i]`` and of ``x[i[None]]``."""
    index = cst.ensure_type(node.slice[0].slice, cst.Index).value
    return cst.ensure_type(index, cst.Subscript).value if m.matches(index, _WITH_DIMENSION) else index


class _Replacer(cst.CSTTransformer):
    """Puts new indices into subscripts."""

    def __init__(self, indices: Mapping[cst.CSTNode, cst.BaseExpression]) -> None:
        super().__init__()
        self.indices = indices

    def leave_Subscript(self, original_node: cst.Subscript, updated_node: cst.Subscript) -> cst.BaseExpression:
        index = self.indices.get(original_node)
        if index is None:
            return updated_node
        made = updated_node.with_changes(slice=[cst.SubscriptElement(cst.Index(index))])
        had_dimension = _index(original_node) is not cst.ensure_type(original_node.slice[0].slice, cst.Index).value
        return made if had_dimension else squeezed(made, 0)


def _tests_around(context: RewriteContext, side: cst.BaseExpression) -> Iterator[tuple[cst.BaseExpression, bool]]:
    """The tests that decide whether a side is chosen, each with its outcome."""
    child: cst.CSTNode = side
    for above in context.around(side):
        if isinstance(above, cst.FunctionDef | cst.Lambda):
            return
        if isinstance(above, cst.If | cst.IfExp) and child is not above.test:
            yield above.test, child is above.body
        child = above


def _bound(
    context: RewriteContext,
    owner: cst.BaseExpression,
    index: cst.BaseExpression,
    tests: Sequence[tuple[cst.BaseExpression, bool]],
) -> dict[str, cst.BaseExpression] | None:
    """The argument of ``clamp`` for an index that a test guards."""
    code = context.code(index)
    for test, outcome in tests:
        above = context.parent(test)
        if isinstance(above, cst.If) and set(written(above)) & set(read([owner, index])):
            return None
        if (context.code(test), outcome) in [(form.format(code), wanted) for form, wanted in _NOT_NEGATIVE]:
            return {"min": expression("0")}
        for form in _LAST:
            last = form.format(context.code(owner))
            if not outcome and code.endswith(" + 1") and context.code(test) == f"{code.removesuffix(' + 1')} == {last}":
                return {"max": expression(last)}
    return None
