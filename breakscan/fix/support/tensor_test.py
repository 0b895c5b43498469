"""A Python test of tensors as one bool tensor, apart from the Python conditions that it joins."""

from collections.abc import Sequence
from dataclasses import dataclass

import libcst as cst

from breakscan.fix.result import Difference, Effect, differs
from breakscan.fix.support import build
from breakscan.fix.support import matchers as m
from breakscan.fix.support.context import Declined, RewriteContext
from breakscan.fix.support.purity import decline_for, why_may_raise, why_not_pure
from breakscan.fix.support.walking import findall

EQUAL = frozenset({"torch.equal", "torch.Tensor.equal"})

ALL_COMPUTED = differs("all tests are computed, and any of them may raise", Effect.RAISES)


@dataclass(frozen=True, slots=True)
class When:
    """A Python condition.  If it does not hold, the whole test is ``otherwise``."""

    test: cst.BaseExpression
    otherwise: bool


@dataclass(frozen=True, slots=True)
class TensorTest:
    """A test.  If all of ``when`` hold, in this order, ``tensor`` is True if and only if the test is true.

    ``joins`` says that several tests are computed of which Python stops at the first that decides."""

    when: tuple[When, ...]
    tensor: cst.BaseExpression
    joins: bool

    def differences(self) -> list[Difference]:
        return [ALL_COMPUTED] if self.joins else []


def tensor_test(context: RewriteContext, test: cst.BaseExpression, negated: bool = False) -> TensorTest:
    """A test, or its opposite, as a bool tensor.  Declines if this is not possible."""
    if named := findall(test, m.NamedExpr()):
        raise Declined(f"`{context.code(named[0])}` assigns a name")
    reader = _Reader(context)
    tensor = reader.read(test, negated)
    return TensorTest(tuple(reader.when), tensor, reader.joins)


def asks_tensor(context: RewriteContext, test: cst.BaseExpression) -> bool:
    """True if a test tests the truth of a tensor or of a value read from a tensor."""
    if isinstance(test, cst.BooleanOperation):
        return asks_tensor(context, test.left) or asks_tensor(context, test.right)
    if isinstance(test, cst.UnaryOperation) and isinstance(test.operator, cst.Not):
        return asks_tensor(context, test.expression)
    sides = (test.left, *(one.comparator for one in test.comparisons)) if isinstance(test, cst.Comparison) else ()
    return context.fact(test).kind in ("tensor", "number") or any(context.fact(one).is_tensor for one in sides)


def operands(test: cst.BaseExpression) -> list[cst.BaseExpression]:
    """The operands of ``a and b and c``, or of ``a or b or c``, in order."""
    if not isinstance(test, cst.BooleanOperation):
        return [test]
    left = test.left
    same = isinstance(left, cst.BooleanOperation) and type(left.operator) is type(test.operator) and not left.lpar
    return [*(operands(left) if same else [left]), test.right]


def not_python(test: cst.BaseExpression) -> cst.BaseExpression:
    """The opposite of a Python condition."""
    if isinstance(test, cst.UnaryOperation) and isinstance(test.operator, cst.Not):
        return build.copied(test.expression)
    if isinstance(test, cst.Comparison) and len(test.comparisons) == 1:
        target = test.comparisons[0]
        other = build.OPPOSITE.get(type(target.operator))
        if other is not None:
            opposite = cst.ComparisonTarget(other.deep_clone(), build.copied(target.comparator))
            return cst.Comparison(build.copied(test.left), [opposite])
    inner = build.copied(test) if isinstance(test, cst.Comparison) else build.operand(test)
    return cst.UnaryOperation(cst.Not(), inner)


class _Reader:
    def __init__(self, context: RewriteContext) -> None:
        self.context = context
        self.when: list[When] = []
        self.joins = False

    def read(self, test: cst.BaseExpression, negated: bool) -> cst.BaseExpression:
        if isinstance(test, cst.UnaryOperation) and isinstance(test.operator, cst.Not):
            return self.read(test.expression, not negated)
        if isinstance(test, cst.BooleanOperation):
            return self._boolean(test, negated)
        if isinstance(test, cst.Comparison):
            operator = test.comparisons[0].operator
            if len(test.comparisons) > 1 or isinstance(operator, cst.In | cst.NotIn):
                raise Declined(f"`{self.context.code(test)}` is more than one comparison")
        return self._leaf(test, negated)

    def _boolean(self, test: cst.BooleanOperation, negated: bool) -> cst.BaseExpression:
        parts = operands(test)
        tensors = [one for one in parts if asks_tensor(self.context, one)]
        for one in parts:
            if one not in tensors:
                self._static(one, isinstance(test.operator, cst.And), negated)
        if len(tensors) == 1:
            return self.read(tensors[0], negated)
        if not tensors:
            raise Declined(f"`{self.context.code(test)}` is not known to test a tensor")
        for one in tensors[1:]:
            self._always_computed(one)
        # `not (not a or not b)` is simpler as `a & b`.
        opposites = sum(m.matches(one, m.UnaryOperation(m.Not() | m.BitInvert())) for one in tensors)
        inner = negated and opposites * 2 > len(tensors)
        both = isinstance(test.operator, cst.And) is not inner
        before = len(self.when)
        made = self.read(tensors[0], inner)
        for one in tensors[1:]:
            made = _joined(made, _like(self.context, one, both), self.read(one, inner))
        # If a Python condition of one operand does not hold, this must decide the whole test.
        if any(when.otherwise is both for when in self.when[before:]):
            raise Declined(f"`{self.context.code(test)}` joins tensors and Python conditions: nest two tests")
        turn = negated and not inner
        self.when[before:] = [When(when.test, when.otherwise is not turn) for when in self.when[before:]]
        return build.inverted(made) if turn else made

    def _static(self, test: cst.BaseExpression, conjunct: bool, negated: bool) -> None:
        reason = why_not_pure(self.context, test) or why_may_raise(self.context, test)
        decline_for(reason, "a Python condition would be evaluated twice, and ")
        self.when.append(When(build.copied(test) if conjunct else not_python(test), conjunct is negated))

    def _always_computed(self, test: cst.BaseExpression) -> None:
        """Declines if it matters that a test is computed although one before it decides."""
        self.joins = True
        for one in _asked(self.context, test):
            if self.context.fact(one).kind == "number":
                raise Declined(f"`{self.context.code(one)}` is a number read from a tensor")
            reason = why_not_pure(self.context, one) or why_may_raise(self.context, one)
            decline_for(reason, "all tests would be evaluated, and ")

    def _leaf(self, test: cst.BaseExpression, negated: bool) -> cst.BaseExpression:
        if isinstance(test, cst.Call):
            name = self.context.dotted(test.func) or ""
            if name in EQUAL:
                return self._equal(test, negated)
        fact = self.context.fact(test)
        if fact.kind == "number":
            raise Declined(f"`{self.context.code(test)}` is a number read from a tensor")
        self.context.require_tensor(test)
        if fact.optional:
            raise Declined(f"`{self.context.code(test)}` is a tensor only in some calls")
        if fact.dtype != "bool":
            return build.compared(test, cst.Equal() if negated else cst.NotEqual(), cst.Integer("0"))
        return build.inverted(test) if negated else build.copied(test)

    def _equal(self, node: cst.Call, negated: bool) -> cst.BaseExpression:
        is_method = self.context.method(node) is not None
        owner = [cst.ensure_type(node.func, cst.Attribute).value] if is_method else []
        given = [*owner, *(one.value for one in node.args if one.keyword is None and not one.star)]
        if len(given) < 2:
            raise Declined(f"`{self.context.code(node)}` has keyword or starred arguments")
        for side in given[:2]:
            if self.context.fact(side).kind != "unknown":
                self.context.require_tensor(side)
        one, other = given[:2]
        if self.context.code(one) == self.context.code(other):
            raise Declined(f"`{self.context.code(node)}` is false only for NaN: test `torch.isnan` instead, or nothing")
        single = self.context.fact(one).zero_dim and self.context.fact(other).zero_dim
        if not single:
            for side in (one, other):
                if not m.matches(side, m.Name() | m.Attribute(m.Name())):
                    code = self.context.code(side)
                    raise Declined(f"`{code}` would be computed twice: assign it to a variable first")
            shapes = [cst.Attribute(build.operand(side), cst.Name("shape")) for side in (one, other)]
            same = cst.Comparison(shapes[0], [cst.ComparisonTarget(cst.Equal(), shapes[1])])
            self.when.append(When(same, negated))
        made = build.compared(one, cst.NotEqual() if negated else cst.Equal(), other)
        return made if single else build.method(made, "any" if negated else "all")


def _like(context: RewriteContext, right: cst.BaseExpression, both: bool) -> cst.BaseBinaryOp:
    """``&`` or ``|`` with the whitespace of the ``and`` or ``or`` before an operand."""
    above = context.parent(right)
    operator = cst.BitAnd() if both else cst.BitOr()
    if not isinstance(above, cst.BooleanOperation) or above.right is not right:
        return operator
    return operator.with_changes(
        whitespace_before=above.operator.whitespace_before.deep_clone(),
        whitespace_after=above.operator.whitespace_after.deep_clone(),
    )


def _joined(left: cst.BaseExpression, operator: cst.BaseBinaryOp, right: cst.BaseExpression) -> cst.BaseExpression:
    """``left & right``, without parentheses around ``~t`` and around operands with the same operator."""
    made = build.binary(left, operator, right)
    if build.is_inverted(left) or (isinstance(left, cst.BinaryOperation) and type(left.operator) is type(operator)):
        made = made.with_changes(left=build.copied(left))
    if build.is_inverted(right):
        made = made.with_changes(right=build.copied(right))
    return made


def _asked(context: RewriteContext, test: cst.BaseExpression) -> Sequence[cst.CSTNode]:
    """The parts of a test that its new form evaluates."""
    if isinstance(test, cst.UnaryOperation) and isinstance(test.operator, cst.Not):
        return _asked(context, test.expression)
    if isinstance(test, cst.BooleanOperation):
        return [one for part in operands(test) for one in _asked(context, part)]
    if isinstance(test, cst.Call) and context.dotted(test.func) in EQUAL:
        return [one.value for one in test.args]
    return [test]
