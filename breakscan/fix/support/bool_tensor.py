"""The test of a branch as a bool tensor: ``a and not b`` becomes ``a & ~b``."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import libcst as cst

from breakscan.fix.support.asserted_ranks import asserted_rank
from breakscan.fix.support.build import (
    and_list,
    call,
    compared,
    compared_with_zero,
    copied,
    inverted,
    is_inverted,
    method,
    operand,
    or_list,
)
from breakscan.fix.support.context import RewriteContext
from breakscan.fix.support.devices import device_of_all, joined_tests, tests_on_one_device
from breakscan.fix.support.difference import EXCEPTIONS, Difference, Effect, ShowsOnly, assumes, differs
from breakscan.fix.support.dtypes import is_bool
from breakscan.fix.support.edit import Declined
from breakscan.fix.support.not_raising import may_raise
from breakscan.fix.support.purity import why_may_raise, why_not_pure
from breakscan.fix.support.walking import children
from breakscan.model.facts import Symbol


@dataclass(frozen=True, slots=True)
class Truth:
    """A test.  ``static`` are the conditions that do not depend on tensors and stay in Python; ``tensor`` is new code.

    ``opposite`` says that the sides are swapped, as for ``not t``.  ``doubts`` are the assumptions under which the
    tensor is equivalent.  ``device`` is a value on whose device all of its tensors are, if that is known;
    ``one_device`` says that they are known to be on one, or that there is only one tensor.
    """

    static: tuple[cst.BaseExpression, ...]
    tensor: cst.BaseExpression
    opposite: bool
    doubts: tuple[Difference, ...]
    device: Symbol | None
    one_device: bool


def truth(context: RewriteContext, test: cst.BaseExpression) -> Truth:
    """The two parts of a test: Python conditions, and one bool tensor.  Declines if there is no such tensor."""
    static, tensors = [], []
    for one in and_list(test):
        if _asks_tensor(context, one):
            tensors.append(one)
        elif not tensors or (
            context.fact(one).kind in ("constant", "none", "shape") and not why_not_pure(context, one)
        ):
            static.append(one)
        else:
            raise Declined(f"`{context.code(one)}` is tested after a tensor and may have side effects")
    if not tensors:
        raise Declined(f"`{context.code(test)}` is not known to be a tensor")
    reader = _Reader(context)
    made = reader.joined(tensors, cst.BitAnd())
    opposite = is_inverted(made)
    if opposite:
        made = copied(cst.ensure_type(made, cst.UnaryOperation).expression)
    device = device_of_all(context, (one for test in tensors for one in joined_tests(context, test)))
    one_device = tests_on_one_device(context, tensors)
    return Truth(tuple(static), made, opposite, tuple(reader.doubts), device, one_device)


def _asks_tensor(context: RewriteContext, test: cst.BaseExpression) -> bool:
    if isinstance(test, cst.BooleanOperation):
        return _asks_tensor(context, test.left) or _asks_tensor(context, test.right)
    if isinstance(test, cst.UnaryOperation) and isinstance(test.operator, cst.Not):
        return _asks_tensor(context, test.expression)
    if isinstance(test, cst.Comparison) and any(
        isinstance(one.operator, cst.Is | cst.IsNot | cst.In | cst.NotIn) for one in test.comparisons
    ):
        return False
    if isinstance(test, cst.Comparison) and len(test.comparisons) > 1:
        return any(context.fact(one).kind == "tensor" for one in _sides(test))
    return context.fact(test).kind == "tensor"


def _sides(test: cst.Comparison) -> list[cst.BaseExpression]:
    return [test.left, *(one.comparator for one in test.comparisons)]


class _Reader:
    def __init__(self, context: RewriteContext) -> None:
        self.context = context
        self.doubts: dict[Difference, None] = {}

    def joined(self, tests: list[cst.BaseExpression], operator: cst.BaseBinaryOp) -> cst.BaseExpression:
        """All tests in one expression; those after the first are now always computed."""
        for test in tests[1:]:
            reason = why_not_pure(self.context, test) or why_may_raise(self.context, test)
            if reason is not None:
                raise Declined(f"both tests would be evaluated, and {reason}")
            if (raising := may_raise(self.context, test, ran={self.context.code(tests[0])})) is not None:
                said = f"`{raising}` is computed even if the test before it decides, and may raise"
                self.doubts[differs(said, Effect.RAISES)] = None
        made = self.read(tests[0])
        for test in tests[1:]:
            left = made if isinstance(made, cst.BinaryOperation) and not made.lpar else operand(made)
            if isinstance(left, cst.BinaryOperation) and type(left.operator) is not type(operator):
                left = operand(left)
            right = self.read(test)
            made = cst.BinaryOperation(left, operator, right if is_inverted(right) else operand(right))
        return made

    def read(self, test: cst.BaseExpression) -> cst.BaseExpression:
        """A new expression for a bool tensor that is True if the test is true."""
        if isinstance(test, cst.BooleanOperation):
            finite = self._not_finite(test)
            if finite is not None:
                return finite
            if isinstance(test.operator, cst.And):
                return self.joined(and_list(test), cst.BitAnd())
            return self.joined(or_list(test), cst.BitOr())
        if isinstance(test, cst.UnaryOperation) and isinstance(test.operator, cst.Not):
            inner = test.expression
            if _is_plain(inner) and not is_bool(self.context, inner):
                self._check(inner)
                return compared_with_zero(inner, negated=True)
            return inverted(self.read(inner))
        if isinstance(test, cst.Comparison) and len(test.comparisons) > 1:
            return self._chain(test)
        self._check(test)
        if not isinstance(test, cst.Comparison) and not is_bool(self.context, test):
            return compared_with_zero(test)
        return copied(test)

    def _check(self, test: cst.BaseExpression) -> None:
        fact = self.context.fact(test)
        code = self.context.code(test)
        if fact.kind != "tensor" or fact.maybe_none or fact.optional:
            raise Declined(f"`{code}` is not known to be a tensor")
        if any(isinstance(one, cst.NamedExpr) for one in (test, *children(test))):
            raise Declined(f"`{code}` assigns a name")
        if not fact.certain:
            self.doubts[assumes(f"`{code}` is assumed to be a tensor", only=ShowsOnly.NO_TENSOR)] = None
        if not fact.zero_dim:
            if not asserted_rank(self.context, test).allows(0):
                raise Declined(f"`{code}` has dimensions, as the code asserts")
            said = f"if `{code}` has dimensions, so has the result, and each element is tested separately"
            self.doubts[differs(said, *EXCEPTIONS, Effect.SHAPES)] = None

    def _chain(self, test: cst.Comparison) -> cst.BaseExpression:
        operands = _sides(test)
        tensors = [self.context.fact(one).kind == "tensor" for one in operands]
        if not all(one or other for one, other in pairwise(tensors)):
            raise Declined(f"part of `{self.context.code(test)}` compares no tensors")
        for one in operands:
            if self.context.fact(one).kind == "tensor":
                self._check(one)
        left, made = test.left, None
        ran = {self.context.code(one) for one in operands[:2]}
        for target in test.comparisons:
            if (raising := may_raise(self.context, target.comparator, ran=ran)) is not None and made is not None:
                said = f"`{raising}` is computed even if the comparison before it decides, and may raise"
                self.doubts[differs(said, Effect.RAISES)] = None
            for one in (left, target.comparator):
                if (reason := why_not_pure(self.context, one)) is not None:
                    raise Declined(f"an operand would be computed twice, and {reason}")
            pair = compared(left, target.operator.deep_clone(), target.comparator)
            made = operand(pair) if made is None else cst.BinaryOperation(made, cst.BitAnd(), operand(pair))
            left = target.comparator
        assert made is not None
        return made

    def _not_finite(self, test: cst.BooleanOperation) -> cst.BaseExpression | None:
        """``~torch.isfinite(x).all()`` for ``torch.isinf(x).any() or torch.isnan(x).any()``."""
        found: dict[str, cst.BaseExpression] = {}
        operands = or_list(test)
        for one in operands:
            inner = _argument_of_any(self.context, one)
            name = _function_name(self.context, inner) if inner is not None else None
            if inner is None or name not in ("isinf", "isnan") or len(inner.args) != 1:
                return None
            found[name] = inner.args[0].value
            checked = inner
        if len(operands) != 2 or len(found) != 2:
            return None
        first, second = found.values()
        if self.context.code(first) != self.context.code(second) or why_not_pure(self.context, first) is not None:
            return None
        for one in operands:
            self._check(one)
        function = checked.func.deep_clone().with_changes(attr=cst.Name("isfinite"))
        finite = method(call(function, first), "all")
        return cst.UnaryOperation(cst.BitInvert(), finite)


def _is_plain(test: cst.BaseExpression) -> bool:
    return not isinstance(test, cst.BooleanOperation | cst.UnaryOperation | cst.Comparison)


def _argument_of_any(context: RewriteContext, node: cst.BaseExpression) -> cst.Call | None:
    """The call ``c`` of ``c.any()``."""
    if context.method(node) != "any":
        return None
    outer = cst.ensure_type(node, cst.Call)
    inner = cst.ensure_type(outer.func, cst.Attribute).value
    return inner if isinstance(inner, cst.Call) and not outer.args else None


def _function_name(context: RewriteContext, node: cst.Call) -> str | None:
    """The name of a torch function that is called as an attribute: ``torch.isnan``."""
    name = context.dotted(node.func) or ""
    return name.removeprefix("torch.") if name.startswith("torch.") and isinstance(node.func, cst.Attribute) else None
