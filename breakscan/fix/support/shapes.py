"""Compares the shapes and numbers of dimensions of tensors, as far as they are known."""

from __future__ import annotations

from enum import Enum

import libcst as cst

from breakscan.fix.support.context import RewriteContext
from breakscan.model.facts import RankBounds, Symbol, TensorFacts


class Fit(Enum):
    """Whether an index with a mask selects single elements or whole rows."""

    ELEMENTS = "elements"
    COUNTED = "elements, but the mask is not computed from the indexed tensor"
    OPEN = "open"
    ROWS = "rows"


def fit(context: RewriteContext, mask: cst.BaseExpression, owner: cst.BaseExpression) -> Fit:
    """What ``owner[mask]`` selects.

    The code does not raise, so the mask has at most as many dimensions as the owner, and a lower bound is enough.
    """
    of_mask, of_owner = rank_of(context, mask), rank_of(context, owner)
    if of_mask.over & of_owner.under:
        return Fit.ELEMENTS
    if of_owner.most is not None and of_mask.least >= of_owner.most:
        return Fit.COUNTED
    if (of_mask.most is not None and of_mask.most < of_owner.least) or of_mask.below & of_owner.over:
        return Fit.ROWS
    return Fit.OPEN


def rank_of(context: RewriteContext, node: cst.BaseExpression) -> RankBounds:
    """What is known about the number of dimensions of an expression's value."""
    facts = context.fact(node).tensor
    return facts.rank if facts is not None else RankBounds()


def have_one_shape(context: RewriteContext, one: cst.BaseExpression, other: cst.BaseExpression) -> bool:
    """Whether two expressions are known to have the same shape."""
    first, second = context.fact(one).tensor, context.fact(other).tensor
    return first is not None and second is not None and are_equal(first, second)


def are_equal(one: TensorFacts, other: TensorFacts) -> bool:
    """Whether two tensors are known to have the same shape."""
    return one.shape == other.shape


def are_different(one: TensorFacts, other: TensorFacts) -> bool:
    """Whether two tensors are known to differ in their number of dimensions, or are made from one shape by different
    steps, which rarely give the same shape."""
    if _has_fewer(one, other) or _has_fewer(other, one):
        return True
    this, that = (shape_made_from(facts.shape) for facts in (one, other))
    return one.shape != other.shape and this == that


def shape_made_from(shape: frozenset[Symbol]) -> frozenset[Symbol]:
    """The shape that a shape was computed from, before all its steps."""
    while len(shape) == 1 and (of := next(iter(shape)).of):
        shape = of
    return shape


def _has_fewer(one: TensorFacts, other: TensorFacts) -> bool:
    this, that = one.rank, other.rank
    return (this.most is not None and this.most < that.least) or bool(this.below & that.over)


def is_vector(facts: TensorFacts) -> bool:
    """Whether a tensor has at most one dimension."""
    return not facts.shape or (facts.rank.most is not None and facts.rank.most < 2)
