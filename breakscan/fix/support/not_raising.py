"""Whether code that would not have run may raise an error, for all dtypes, ranks and sizes that its values may have.

Unknown operations count as raising, because the inputs of a program are not known.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

import libcst as cst

from breakscan.fix.support.context import RewriteContext
from breakscan.fix.support.dtypes import KnownDtype, never_raises
from breakscan.fix.support.float_limits import asked_limits
from breakscan.fix.support.operators import operator_of
from breakscan.fix.support.walking import children
from breakscan.model.facts import DtypeOf, Exactly, ResultOf, TensorFacts
from breakscan.rulebook.torch_facts.not_measured import ATTRIBUTES_THAT_RAISE
from breakscan.rulebook.torch_facts.operators import Often, Operator, Shape
from breakscan.rulebook.torch_facts.promotion import COMPLEX
from breakscan.rulebook.torch_facts.table import load_api

_NUMBERS = ("number", "constant", "shape", "drawn")


def may_raise(
    context: RewriteContext,
    node: cst.BaseExpression,
    given: Sequence[KnownDtype] = (),
    ran: Collection[str] = (),
) -> str | None:
    """The code of the part of an expression that may raise; None if there is none.

    ``given`` are known dtypes where the expression runs, ``ran`` is the code of expressions that have already run.
    """
    if context.code(node) in ran:
        return None
    for part in children(node):
        for inner in _expressions(part):
            if (found := may_raise(context, inner, given, ran)) is not None:
                return found
    return context.code(node) if _raises(context, node, given) else None


def _expressions(node: cst.CSTNode) -> list[cst.BaseExpression]:
    """The outermost expressions of a node that are evaluated with it."""
    if isinstance(node, cst.Lambda | cst.Annotation):
        return []
    if isinstance(node, cst.BaseExpression):
        return [node]
    if isinstance(node, cst.Arg):
        return [node.value]
    return [one for child in children(node) for one in _expressions(child)]


def _raises(context: RewriteContext, node: cst.BaseExpression, given: Sequence[KnownDtype]) -> bool:
    if isinstance(node, cst.Call):
        return _call_raises(context, node, given)
    if isinstance(node, cst.BinaryOperation):
        return _operation_raises(context, node, given)
    if isinstance(node, cst.Comparison):
        parts = [node.left, *(one.comparator for one in node.comparisons)]
        return _refuses_dtype(context, node, given, known=None) or not _broadcast(context, parts)
    if isinstance(node, cst.UnaryOperation) and not isinstance(node.operator, cst.Not):
        return not _is_constant(context, node.expression) and _refuses_dtype(context, node, given, known=None)
    if isinstance(node, cst.Attribute):
        return _attribute_raises(context, node)
    if isinstance(node, cst.Subscript):
        return not _is_always_in_range(context, node)
    return False


def _call_raises(context: RewriteContext, node: cst.Call, given: Sequence[KnownDtype]) -> bool:
    if context.fact(node).kind in ("constant", "shape") and all(_is_constant(context, arg.value) for arg in node.args):
        return False
    if context.dotted(node.func) in ("torch.finfo", "torch.iinfo"):
        return bool(asked_limits(context, node, given))
    known = operator_of(context, node)
    if known is None or known.raises_for_values is not Often.NEVER or _refuses_gradient(context, node):
        return True
    operands = [arg.value for arg in node.args]
    if context.method(node) is not None and isinstance(node.func, cst.Attribute):
        operands.insert(0, node.func.value)
    if _refuses_dtype(context, node, given, known):
        return True
    tensors = [one for one in operands if not _is_constant(context, one)]
    if known.elementwise:
        return not _broadcast(context, tensors)
    return not _takes_any_shape(context, known, tensors, [one for one in operands if one not in tensors])


def _refuses_gradient(context: RewriteContext, node: cst.Call) -> bool:
    """Whether a tensor is made to require a gradient, as by ``zeros_like(t, requires_grad=True)``, without floats."""
    asked = [arg.value for arg in node.args if arg.keyword is not None and arg.keyword.value == "requires_grad"]
    fact = context.fact(node)
    return any(context.code(one) != "False" for one in asked) and not (fact.certain and fact.dtype == "float")


def _takes_any_shape(
    context: RewriteContext,
    known: Operator,
    tensors: Sequence[cst.BaseExpression],
    others: Sequence[cst.BaseExpression],
) -> bool:
    """Whether an operator that is not elementwise works for all shapes that its tensor may have."""
    if not (known.accepts_empty and known.accepts_zero_dim) or len(tensors) != 1:
        return False
    if not others:
        shapes = known.plain_shapes or frozenset()
        return not shapes.isdisjoint({Shape.ZERO_DIM, Shape.FIRST})
    # A dimension.
    dimensions = [context.fact(one).literal for one in others]
    rank = _facts(context, tensors[0])
    return rank is not None and all(
        isinstance(one, bool) or (isinstance(one, int) and (-1 <= one < 1 or -rank.rank.least <= one < rank.rank.least))
        for one in dimensions
    )


def _operation_raises(context: RewriteContext, node: cst.BinaryOperation, given: Sequence[KnownDtype]) -> bool:
    operator, right = node.operator, context.fact(node.right)
    numbers = [_is_constant(context, one) for one in (node.left, node.right)]
    if isinstance(operator, cst.MatrixMultiply | cst.LeftShift | cst.RightShift):
        return True
    if isinstance(operator, cst.Divide | cst.FloorDivide | cst.Modulo):
        whole = not isinstance(operator, cst.Divide)
        if (all(numbers) or (whole and right.dtype != "float")) and not right.literal:
            return True
    if isinstance(operator, cst.Power) and not (isinstance(right.literal, int | float) and right.literal >= 0):
        # An integer tensor has no negative powers.
        return True
    if all(numbers):
        return False
    return _refuses_dtype(context, node, given, known=None) or not _broadcast(context, [node.left, node.right])


def _refuses_dtype(
    context: RewriteContext, node: cst.BaseExpression, given: Sequence[KnownDtype], known: Operator | None
) -> bool:
    """Whether an operation raises for a dtype that its inputs may have."""
    facts = _facts(context, node)
    if facts is not None and isinstance(facts.dtype, ResultOf | Exactly):
        if isinstance(facts.dtype, ResultOf):
            return not never_raises(context.torch_version, facts.dtype, given)
        if known is None:
            return False
    return known is None or not known.refused <= COMPLEX


def _broadcast(context: RewriteContext, operands: Sequence[cst.BaseExpression]) -> bool:
    """Whether the shapes of tensors are known to broadcast: all are the same or 0-d."""
    shapes = set()
    for one in operands:
        if _is_constant(context, one):
            continue
        facts = _facts(context, one)
        if facts is None:
            return False
        if facts.shape:
            shapes.add(facts.shape)
    # A shape that others broadcast to is a larger set of symbols, and was already computed.
    largest = max(shapes, key=len, default=frozenset())
    return all(one <= largest for one in shapes)


def _attribute_raises(context: RewriteContext, node: cst.Attribute) -> bool:
    owner = context.fact(node.value)
    if owner.kind == "tensor":
        known = load_api(context.torch_version).attributes
        raises = node.attr.value in ATTRIBUTES_THAT_RAISE or node.attr.value not in known
        return raises and not isinstance(context.parent(node), cst.Call)
    if owner.kind in ("module", "instance"):
        return context.fact(node).kind == "unknown" and not isinstance(context.parent(node), cst.Call)
    return False


def _is_always_in_range(context: RewriteContext, node: cst.Subscript) -> bool:
    """Whether a subscript of a tensor works for all shapes: only slices, at most as many as it has dimensions."""
    facts = _facts(context, node.value)
    if facts is None or context.fact(node.value).kind != "tensor":
        return False
    taken = 0
    for element in node.slice:
        index = element.slice
        if isinstance(index, cst.Slice):
            bounds = [one for one in (index.lower, index.upper, index.step) if one is not None]
            if any(context.fact(one).kind not in ("constant", "shape") for one in bounds):
                return False
            taken += 1
        elif not isinstance(index, cst.Index) or context.code(index.value) not in ("...", "None"):
            return False
    return taken <= facts.rank.least


def _is_constant(context: RewriteContext, node: cst.BaseExpression) -> bool:
    fact, facts = context.fact(node), _facts(context, node)
    number = facts is not None and isinstance(facts.dtype, DtypeOf | Exactly) and facts.dtype.number
    return fact.kind in (*_NUMBERS, "none", "namespace") or fact.is_number or bool(number)


def _facts(context: RewriteContext, node: cst.BaseExpression) -> TensorFacts | None:
    return context.fact(node).tensor if context.tree.holds(node) else None
