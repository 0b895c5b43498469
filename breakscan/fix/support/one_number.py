"""Tensors that Python numbers are read from."""

from __future__ import annotations

import libcst as cst

from breakscan.fix.support import matchers as m
from breakscan.fix.support.build import copied, method
from breakscan.fix.support.context import RewriteContext
from breakscan.fix.support.edit import Declined
from breakscan.fix.support.grad_mode import no_gradient_scope
from breakscan.fix.support.operators import cuts_gradient
from breakscan.fix.support.walking import findall


def must_be_tensor(context: RewriteContext, tensor: cst.BaseExpression) -> None:
    """Declines if the expression is not known to be a tensor."""
    text = context.code(tensor)
    if findall(tensor, m.Name("np") | m.Name("numpy") | m.Attribute(attr=m.Name("numpy"))):
        raise Declined(f"`{text}` is a NumPy array, not a tensor")
    if not context.fact(tensor).is_tensor:
        raise Declined(f"`{text}` is not known to be a tensor")


def must_have_no_dimension(context: RewriteContext, tensor: cst.BaseExpression) -> None:
    """Declines if a tensor may have dimensions, which the number does not have."""
    if not context.fact(tensor).zero_dim:
        raise Declined(f"`{context.code(tensor)}` may have dimensions of size 1, which a number does not have")


def without_gradient(context: RewriteContext, tensor: cst.BaseExpression) -> cst.BaseExpression:
    """A copy of a tensor, detached if a gradient may flow through it, because none flows through a number."""
    if context.fact(tensor).dtype in ("int", "bool") or cuts_gradient(context, tensor):
        return copied(tensor)
    facts = context.fact(tensor).tensor
    if no_gradient_scope(context, tensor) is not None and facts is not None and facts.is_new:
        return copied(tensor)
    return method(tensor, "detach")
