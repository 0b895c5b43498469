"""The torch function or tensor method that a call calls, with what is measured about it."""

from __future__ import annotations

import libcst as cst

from breakscan.rewrite_support.context import RewriteContext
from breakscan.rewrite_support.purity import called
from breakscan.torch_facts.operators import Gradient, Often, Operator, operator


def operator_of(context: RewriteContext, node: cst.Call) -> Operator | None:
    """What is known about what a call calls; None where it is no function of torch, or nothing is known."""
    function, method = called(context, node)
    if method is not None:
        return operator(context.torch_version, f"torch.Tensor.{method}")
    if function is None or not function.startswith("torch."):
        return None
    return operator(context.torch_version, function)


def is_elementwise(context: RewriteContext, node: cst.Call) -> bool:
    """Whether each element of the result is computed from the elements at the same place alone, for sure."""
    known = operator_of(context, node)
    return known is not None and known.elementwise is True and known.draws_random is Often.NEVER


def keeps_zero_gradients(context: RewriteContext, node: cst.Call) -> bool:
    """Whether a gradient of zero stays zero, whatever the values are, infinities and NaN included."""
    known = operator_of(context, node)
    return known is not None and known.gradient in (Gradient.NONE, Gradient.ZERO)


def makes_new(context: RewriteContext, node: cst.Call) -> bool:
    """Whether the result of a call shares no storage with what it is given, for sure."""
    if any(arg.keyword is not None and arg.keyword.value in ("out", "inplace") for arg in node.args):
        return False
    known = operator_of(context, node)
    if known is None or known.result is None:
        return False
    if known.result == "python":
        return True
    return known.shares_storage is Often.NEVER and known.returns_input is Often.NEVER
