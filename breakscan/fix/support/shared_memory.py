"""Whether a tensor that is written to may share memory: elements with one another, or with the index.

PyTorch refuses some writes to such tensors and makes others, and it looks at the layout, not at the values.
"""

from __future__ import annotations

import libcst as cst

from breakscan.fix.support.assignments import defined
from breakscan.fix.support.context import RewriteContext
from breakscan.model.facts import Symbol


def elements_may_share(context: RewriteContext, owner: cst.BaseExpression) -> bool:
    """Whether elements of a tensor may share memory, as after ``expand``: unless it is known to be new."""
    facts = context.fact(defined(context, owner)).tensor
    return facts is None or not facts.is_new


def shares_with_index(context: RewriteContext, owner: cst.BaseExpression, index: cst.BaseExpression) -> bool:
    """Whether a tensor may share memory with a bool or integer tensor by which it is indexed."""
    kind, of_index = context.fact(owner).dtype, context.fact(index).dtype
    if None not in (kind, of_index) and kind != of_index:
        return False
    written, read = context.fact(owner).tensor, context.fact(index).tensor
    if written is None or read is None:
        return True
    # A caller may hand in one tensor twice.
    return not written.storage.isdisjoint(read.storage) or not (_is_new(written.storage) or _is_new(read.storage))


def _is_new(storage: frozenset[Symbol]) -> bool:
    return all(one.new for one in storage)
