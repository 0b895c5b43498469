"""Whether a side that ``torch.where`` does not choose may spoil the gradient.

The side gets a gradient of zero, which its own operations multiply with their derivatives: zero times infinity is NaN.
"""

from __future__ import annotations

from collections.abc import Iterable

import libcst as cst

from breakscan.rewrite_support.context import RewriteContext
from breakscan.rewrite_support.names import read, written
from breakscan.rewrite_support.operators import operator_of
from breakscan.torch_facts.operators import Gradient


def why_gradient_differs(context: RewriteContext, node: cst.BaseExpression, *, finite: bool) -> str | None:
    """What of an expression may turn a gradient of zero into NaN, in words; None where nothing does.

    ``finite`` tells that values may be taken to be finite, because the test does not look for those that are not.
    """
    if context.fact(node).dtype in ("int", "bool") or _without_gradients(context, node):
        return None
    found = _Steep(context, finite)
    node.visit(found)
    return f"`{found.culprit}` may give a NaN gradient when it is not chosen" if found.culprit else None


def why_origin_differs(context: RewriteContext, names: Iterable[str], *, finite: bool) -> str | None:
    """The same for what the names of a side were made of, where the other side reads none of them."""
    queue, seen = list(names), set(names)
    for name in queue:
        for value in assigned_values(context.function, name):
            if (reason := why_gradient_differs(context, value, finite=finite)) is not None:
                return reason
            if context.fact(value).dtype not in ("int", "bool"):
                queue += [one for one in read(value) if one not in seen]
                seen.update(queue)
    return None


def _without_gradients(context: RewriteContext, node: cst.CSTNode) -> bool:
    return no_gradient_scope(context, node) is not None


def no_gradient_scope(context: RewriteContext, node: cst.CSTNode) -> cst.With | cst.FunctionDef | None:
    """What turns gradients off around a node: a ``with`` statement, or the function with a decorator that does."""
    for one in context.around(node):
        if isinstance(one, cst.With):
            heads = [item.item for item in one.items]
        elif isinstance(one, cst.FunctionDef):
            heads = [decorator.decorator for decorator in one.decorators]
        else:
            continue
        for head in heads:
            function = head.func if isinstance(head, cst.Call) else head
            # A decorator is no expression of the function, so that only its text is known.
            if context.code(function).rpartition(".")[2] in ("no_grad", "inference_mode"):
                return one
        if isinstance(one, cst.FunctionDef):
            return None
    return None


def assigned_values(function: cst.FunctionDef, name: str) -> list[cst.BaseExpression]:
    """The values that a function assigns to a name."""
    return _Values(name).of(function)


class _Values(cst.CSTVisitor):
    """What a function assigns to a name."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.found: list[cst.BaseExpression] = []

    def of(self, function: cst.FunctionDef) -> list[cst.BaseExpression]:
        function.body.visit(self)
        return self.found

    def visit_Assign(self, node: cst.Assign) -> None:
        if any(self.name in written(target) for target in node.targets):
            self.found.append(node.value)

    def visit_AnnAssign(self, node: cst.AnnAssign) -> None:
        if node.value is not None and self.name in written(node):
            self.found.append(node.value)

    def visit_AugAssign(self, node: cst.AugAssign) -> None:
        if self.name in written(node):
            self.found.append(node.value)


class _Steep(cst.CSTVisitor):
    def __init__(self, context: RewriteContext, finite: bool) -> None:
        self.context = context
        self.finite = finite
        self.culprit: str | None = None

    def _found(self, node: cst.BaseExpression) -> None:
        self.culprit = self.culprit or self.context.code(node)

    def visit_Call(self, node: cst.Call) -> bool:
        if self.context.fact(node.func).kind == "module":
            return self.finite
        fact = self.context.fact(node)
        if fact.dtype in ("int", "bool") or fact.kind in ("constant", "shape", "number", "container"):
            return False
        known = operator_of(self.context, node)
        gradient = known.gradient if known is not None else None
        harmless = {Gradient.NONE, Gradient.ZERO} | ({Gradient.ZERO_IF_FINITE} if self.finite else set())
        if gradient not in harmless:
            self._found(node.func)
        return True

    def visit_Comparison(self, node: cst.Comparison) -> bool:
        return False

    def visit_BinaryOperation(self, node: cst.BinaryOperation) -> bool:
        if not self._has_tensor(node):
            return False
        literal = self.context.fact(node.right).literal
        number = isinstance(node.right, cst.BaseNumber) or isinstance(literal, int | float)
        if isinstance(node.operator, cst.Multiply):
            if not self.finite and not (number or isinstance(node.left, cst.BaseNumber)):
                self._found(node)
        elif isinstance(node.operator, cst.Divide):
            if not number or literal == 0:
                self._found(node)
        elif isinstance(node.operator, cst.Power):
            whole = isinstance(node.right, cst.Integer) and node.right.evaluated_value > 0
            if not (whole and self.finite):
                self._found(node)
        elif isinstance(node.operator, cst.MatrixMultiply):
            if not self.finite:
                self._found(node)
        elif not isinstance(node.operator, cst.Add | cst.Subtract | cst.BitAnd | cst.BitOr | cst.BitXor):
            self._found(node)
        return True

    def _has_tensor(self, node: cst.BinaryOperation) -> bool:
        return self.context.fact(node).kind in ("tensor", "unknown")
