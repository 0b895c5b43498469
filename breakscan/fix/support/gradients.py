"""Whether the side that ``torch.where`` does not choose may make gradients NaN.

This side gets a gradient of zero, which its operations multiply by their derivatives: zero times infinity is NaN.
"""

from __future__ import annotations

from collections.abc import Collection
from math import isfinite

import libcst as cst

from breakscan.fix.support import matchers as m
from breakscan.fix.support.context import RewriteContext
from breakscan.fix.support.difference import Difference, Effect, differs
from breakscan.fix.support.grad_mode import no_gradient_scope
from breakscan.fix.support.names import read, written
from breakscan.fix.support.operators import operator_of
from breakscan.fix.support.walking import findall
from breakscan.rulebook.torch_facts.not_measured import MADE_FROM_SIZES
from breakscan.rulebook.torch_facts.operators import Gradient


def why_gradient_differs(context: RewriteContext, node: cst.BaseExpression) -> Difference | None:
    """The part of an expression that may turn a gradient of zero into NaN, as a difference; None if there is none."""
    if context.fact(node).dtype in ("int", "bool") or no_gradient_scope(context, node) is not None:
        return None
    found = _Steep(context)
    node.visit(found)
    if found.for_finite is not None:
        return differs(f"`{found.for_finite}` may give a NaN gradient if it is not chosen", Effect.GRADIENTS)
    if found.for_others is not None:
        said = f"`{found.for_others}` may give a NaN gradient if it is not chosen and a value is not finite"
        return differs(said, Effect.GRADIENTS)
    return None


def why_origin_differs(context: RewriteContext, names: Collection[str], apart: Collection[str]) -> Difference | None:
    """The same for the values that the names of a side were computed from, except the names in ``apart``."""
    queue = sorted(name for name in names if name not in apart)
    seen = {*queue, *apart}
    for name in queue:
        for value in assigned_values(context.function, name):
            if (reason := why_gradient_differs(context, value)) is not None:
                return reason
            if context.fact(value).dtype not in ("int", "bool"):
                queue += [one for one in read(value) if one not in seen]
                seen.update(queue)
    return None


def assigned_values(function: cst.FunctionDef, name: str) -> list[cst.BaseExpression]:
    """The values that a function assigns to a name."""
    return values_in(function.body, name)


def values_in(node: cst.CSTNode, name: str) -> list[cst.BaseExpression]:
    """The values that a piece of code assigns to a name."""
    found: list[cst.BaseExpression] = []
    for one in findall(node, m.Assign() | m.AnnAssign() | m.AugAssign()):
        if isinstance(one, cst.Assign | cst.AnnAssign | cst.AugAssign) and one.value is not None:
            targets = one.targets if isinstance(one, cst.Assign) else (one,)
            if any(name in written(target) for target in targets):
                found.append(one.value)
    return found


class _Steep(cst.CSTVisitor):
    """The first operation that may give NaN for finite values, and the first that may only for other values."""

    def __init__(self, context: RewriteContext) -> None:
        self.context = context
        self.for_finite: str | None = None
        self.for_others: str | None = None

    def _steep(self, node: cst.BaseExpression) -> None:
        self.for_finite = self.for_finite or self.context.code(node)

    def _steep_at_infinity(self, node: cst.BaseExpression) -> None:
        self.for_others = self.for_others or self.context.code(node)

    def visit_Call(self, node: cst.Call) -> bool:
        if self.context.fact(node.func).kind == "module":
            self._steep_at_infinity(node.func)
            return True
        if (self.context.dotted(node.func) or "").removeprefix("torch.") in MADE_FROM_SIZES:
            return False
        fact = self.context.fact(node)
        if fact.dtype in ("int", "bool") or fact.kind in ("constant", "shape", "number", "container"):
            return False
        known = operator_of(self.context, node)
        gradient = known.gradient if known is not None else None
        if gradient is Gradient.ZERO_IF_FINITE:
            self._steep_at_infinity(node.func)
        elif gradient not in (Gradient.NONE, Gradient.ZERO):
            self._steep(node.func)
        return True

    def visit_Comparison(self, node: cst.Comparison) -> bool:
        return False

    def visit_BinaryOperation(self, node: cst.BinaryOperation) -> bool:
        if not self._has_tensor(node):
            return False
        literal = self.context.fact(node.right).literal
        number = isinstance(node.right, cst.BaseNumber) or (isinstance(literal, int | float) and isfinite(literal))
        if isinstance(node.operator, cst.Multiply):
            if not (number or isinstance(node.left, cst.BaseNumber)):
                self._steep_at_infinity(node)
        elif isinstance(node.operator, cst.MatrixMultiply):
            self._steep_at_infinity(node)
        elif isinstance(node.operator, cst.Divide):
            if not number or literal == 0:
                self._steep(node)
        elif isinstance(node.operator, cst.Power):
            if isinstance(node.right, cst.Integer) and node.right.evaluated_value > 0:
                self._steep_at_infinity(node)
            else:
                self._steep(node)
        elif not isinstance(node.operator, cst.Add | cst.Subtract | cst.BitAnd | cst.BitOr | cst.BitXor):
            self._steep(node)
        return True

    def _has_tensor(self, node: cst.BinaryOperation) -> bool:
        return self.context.fact(node).kind in ("tensor", "unknown")
