"""Expressions of elements that a mask selects, and the same expressions for all elements."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import libcst as cst

from breakscan.fix.support import build
from breakscan.fix.support import matchers as m
from breakscan.fix.support.called import called
from breakscan.fix.support.context import RewriteContext
from breakscan.fix.support.contradictions import may_be_index
from breakscan.fix.support.difference import Difference, Effect, ShowsOnly, assumes, differs
from breakscan.fix.support.dtypes import is_bool
from breakscan.fix.support.edit import Declined
from breakscan.fix.support.made_from import have_common_root, is_computed
from breakscan.fix.support.operators import flattens, is_conversion, is_elementwise, keeps_zero_gradients
from breakscan.fix.support.purity import why_not_pure
from breakscan.fix.support.shapes import Fit, fit, have_one_shape
from breakscan.fix.support.walking import findall
from breakscan.fix.support.wording import plain

_LINEAR = (cst.Add, cst.Subtract)
_SCALARS = frozenset({"constant", "drawn", "number", "shape"})


@dataclass(frozen=True, slots=True)
class Leaf:
    """``owner[mask]``, or an equivalent expression.

    ``loose`` says that the mask may have a different shape from the owner: ``masked_select`` broadcasts them, and
    indices from a mask may index any tensor.
    """

    node: cst.BaseExpression
    owner: cst.BaseExpression
    mask: cst.BaseExpression
    loose: str = ""


@dataclass(slots=True)
class Masked:
    """An expression of selected elements.

    ``leaves`` are the expressions that select them, ``numbers`` the attributes beside them that are taken for numbers.
    ``bends`` says that a zero gradient may not stay zero, ``saves`` that autograd may keep operands for the backward
    pass.
    """

    mask: cst.BaseExpression
    leaves: list[Leaf] = field(default_factory=list)
    numbers: dict[str, None] = field(default_factory=dict)
    bends: bool = False
    saves: bool = False


def leaf_at(context: RewriteContext, node: cst.CSTNode) -> Leaf | None:
    """``owner[mask]``, ``owner[torch.where(mask)]`` or ``owner.masked_select(mask)``; ``mask`` may be any index."""
    if isinstance(node, cst.Subscript) and len(node.slice) == 1 and isinstance(node.slice[0].slice, cst.Index):
        index = node.slice[0].slice.value
        mask = hits_of(context, index)
        return Leaf(node, node.value, mask, "indices") if mask is not None else Leaf(node, node.value, index)
    if m.matches(node, m.Call(func=m.Attribute(attr=m.Name("masked_select")))):
        call = cst.ensure_type(node, cst.Call)
        function = cst.ensure_type(call.func, cst.Attribute)
        given = [arg.value for arg in call.args if arg.keyword is None or arg.keyword.value in ("input", "mask")]
        if len(given) == len(call.args) == 2:
            return Leaf(call, given[0], given[1], "select")
        if len(given) == len(call.args) == 1:
            return Leaf(call, function.value, given[0], "select")
    return None


def hits_of(context: RewriteContext, node: cst.BaseExpression) -> cst.BaseExpression | None:
    """The mask of a call that returns the indices of its nonzero elements as a tuple with one tensor per dimension."""
    if not isinstance(node, cst.Call):
        return None
    function, method = called(context, node)
    positional = [arg.value for arg in node.args if arg.keyword is None]
    as_tuple = [arg for arg in node.args if m.matches(arg, m.Arg(m.Name("True"), keyword=m.Name("as_tuple")))]
    if method == "nonzero" and isinstance(node.func, cst.Attribute) and len(node.args) == len(as_tuple) == 1:
        return node.func.value
    if function == "torch.nonzero" and len(as_tuple) == 1 and len(positional) == 1 and len(node.args) == 2:
        return positional[0]
    return positional[0] if function == "torch.where" and len(positional) == len(node.args) == 1 else None


def leaf_of(context: RewriteContext) -> Leaf:
    """The masked index that the finding is about.  Declines if the index is not a single mask."""
    node: cst.CSTNode | None = context.node
    if isinstance(node, cst.Call) and hits_of(context, node) is not None:
        node = next((one for one in context.around() if isinstance(one, cst.Subscript)), None)
        if node is None or not any(one is context.node for one in findall(node.slice[0], m.Call())):
            raise Declined("the indices are not used directly as an index, as in `x[mask.nonzero()]`")
    leaf = leaf_at(context, node) if node is not None else None
    if leaf is None:
        raise Declined(
            "the mask is one of several indices" if isinstance(node, cst.Subscript) else "this is not an index"
        )
    if leaf.loose == "indices" and leaf.node is not node:
        raise Declined("the indices are not used directly as an index, as in `x[mask.nonzero()]`")
    if not context.fact(leaf.owner).is_tensor:
        raise Declined(f"`{plain(context, leaf.owner)}` is not known to be a tensor")
    if context.fact(leaf.mask).dtype not in (None, "bool"):
        raise Declined(f"`{plain(context, leaf.mask)}` is not a bool mask")
    for part in (leaf.owner, leaf.mask):
        if (reason := why_not_pure(context, part)) is not None:
            raise Declined(reason)
    return leaf


def is_scalar(context: RewriteContext, node: cst.BaseExpression) -> bool:
    """Whether a value is a single number: a Python number or a 0-d tensor."""
    fact = context.fact(node)
    if isinstance(node, cst.UnaryOperation):
        return is_scalar(context, node.expression)
    return isinstance(node, cst.BaseNumber) or fact.kind in _SCALARS or (fact.is_tensor and fact.zero_dim is True)


def masked(
    context: RewriteContext, node: cst.BaseExpression, mask: cst.BaseExpression, *, numbers: bool = False
) -> Masked:
    """An expression of elements that a mask selects.  Declines if it is not elementwise.

    ``numbers`` says that the caller states which attributes are taken for numbers (``conditions``).
    """
    found = Masked(mask)
    _collect(context, node, found, plain(context, mask))
    if not numbers and found.numbers:
        raise _too_many(next(iter(found.numbers)))
    return found


def _too_many(text: str) -> Declined:
    return Declined(f"`{text}` may have as many elements as the mask selects")


def _collect(context: RewriteContext, node: cst.BaseExpression, found: Masked, mask: str) -> None:
    leaf = leaf_at(context, node)
    if leaf is not None and plain(context, leaf.mask) == mask:
        found.leaves.append(leaf)
    elif is_scalar(context, node):
        pass
    elif isinstance(node, cst.UnaryOperation) and isinstance(node.operator, cst.Minus | cst.BitInvert):
        _collect(context, node.expression, found, mask)
    elif isinstance(node, cst.BinaryOperation) and not isinstance(node.operator, cst.MatrixMultiply):
        _refuse_division(context, node)
        found.bends |= not _is_linear(context, node)
        found.saves |= not _is_linear(context, node)
        _collect(context, node.left, found, mask)
        _collect(context, node.right, found, mask)
    elif isinstance(node, cst.Comparison) and len(node.comparisons) == 1:
        _collect(context, node.left, found, mask)
        _collect(context, node.comparisons[0].comparator, found, mask)
    elif isinstance(node, cst.Call):
        _collect_call(context, node, found, mask)
    elif _is_set_elsewhere(context, node):
        # How many elements this call selects was not known where the attribute was set.
        found.numbers[plain(context, node)] = None
    else:
        raise _too_many(plain(context, node))


def _is_set_elsewhere(context: RewriteContext, node: cst.BaseExpression) -> bool:
    """Whether a value of unknown kind is an attribute of the object that only its ``__init__`` sets."""
    fact = context.fact(node)
    if not m.matches(node, m.Attribute(value=m.Name("self"))) or fact.kind != "unknown" or fact.maybe_none:
        return False
    owner = next((one for one in context.around(node) if isinstance(one, cst.ClassDef)), None)
    text = plain(context, node)
    setters = [
        next((above.name.value for above in context.around(one) if isinstance(above, cst.FunctionDef)), None)
        for one in (findall(owner, m.AssignTarget() | m.AugAssign() | m.AnnAssign()) if owner is not None else ())
        if isinstance(one, cst.AssignTarget | cst.AugAssign | cst.AnnAssign) and plain(context, one.target) == text
    ]
    return bool(setters) and set(setters) == {"__init__"}


def _is_linear(context: RewriteContext, node: cst.BinaryOperation) -> bool:
    if isinstance(node.operator, cst.Multiply):
        return _is_number(context, node.left) or _is_number(context, node.right)
    return isinstance(node.operator, _LINEAR) or (
        isinstance(node.operator, cst.Divide) and _is_number(context, node.right)
    )


def _is_number(context: RewriteContext, node: cst.BaseExpression) -> bool:
    return context.fact(node).kind in _SCALARS and context.fact(node).literal != 0


def _refuse_division(context: RewriteContext, node: cst.BinaryOperation) -> None:
    if isinstance(node.operator, cst.FloorDivide | cst.Modulo) and context.fact(node).dtype != "float":
        raise Declined(f"`{plain(context, node)}` may divide by zero where the mask is False")


def _collect_call(context: RewriteContext, node: cst.Call, found: Masked, mask: str) -> None:
    function, method = called(context, node)
    if method is not None and isinstance(node.func, cst.Attribute):
        receiver = node.func.value
        converts = is_conversion(context, node) and not any(leaf_at(context, arg.value) for arg in node.args)
        if converts and why_not_pure(context, node) is None:
            _collect(context, receiver, found, mask)
            return
        if is_flattening(context, node):
            _collect(context, receiver, found, mask)
            return
        operands = [receiver, *(arg.value for arg in node.args)]
    elif (function or "").startswith("torch."):
        operands = [arg.value for arg in node.args]
    else:
        raise Declined(f"`{plain(context, node.func)}` is called with the selected elements: pass all and the mask")
    if (
        not is_elementwise(context, node)
        or any(arg.star for arg in node.args)
        or why_not_pure(context, node) is not None
    ):
        raise Declined(f"`{plain(context, node.func)}` is not elementwise")
    found.bends |= not keeps_zero_gradients(context, node)
    found.saves = True
    for operand in operands:
        _collect(context, operand, found, mask)


def is_flattening(context: RewriteContext, node: cst.Call) -> bool:
    """Whether a method returns a vector unchanged."""
    minus_one = m.UnaryOperation(operator=m.Minus(), expression=m.Integer("1"))
    to_vector = m.Call(func=m.Attribute(attr=m.Name("view") | m.Name("reshape")), args=[m.Arg(minus_one)])
    return flattens(context, node) or m.matches(node, to_vector)


class _Whole(cst.CSTTransformer):
    def __init__(self, context: RewriteContext, leaves: Iterable[Leaf]) -> None:
        super().__init__()
        self.context = context
        self.owners = {leaf.node: leaf.owner for leaf in leaves}

    def on_visit(self, node: cst.CSTNode) -> bool:
        return node not in self.owners

    def on_leave(self, original_node: cst.CSTNodeT, updated_node: cst.CSTNodeT) -> cst.CSTNode:  # type: ignore[override]
        if (owner := self.owners.get(original_node)) is not None:  # type: ignore[call-overload]
            return build.operand(owner)
        if not isinstance(original_node, cst.Call) or not is_flattening(self.context, original_node):
            return updated_node
        return cst.ensure_type(cst.ensure_type(updated_node, cst.Call).func, cst.Attribute).value


def whole(context: RewriteContext, node: cst.BaseExpression, leaves: Iterable[Leaf]) -> cst.BaseExpression:
    """The expression for all elements: ``x - y`` for ``x[mask] - y[mask]``."""
    made = node.visit(_Whole(context, leaves))
    assert isinstance(made, cst.BaseExpression)
    return build.copied(made)


def conditions(context: RewriteContext, found: Masked, *others: Leaf, counts: bool = False) -> list[Difference]:
    """Assumptions that the code does not prove.  Declines if the mask is known to select rows.

    ``others`` are also indexed by the mask; ``counts`` says that the True elements of the mask are counted.
    """
    needs: list[Difference] = []
    mask = plain(context, found.mask)
    loose: dict[str, None] = {}
    shaped: dict[str, None] = {}
    placed: dict[str, None] = {}
    leaves = [*others, *found.leaves]
    fits = {fit(context, found.mask, leaf.owner) for leaf in leaves}
    nothing_known = fits == {Fit.OPEN} and is_computed(context, found.mask)
    for leaf in leaves:
        text = plain(context, leaf.owner)
        if not context.fact(leaf.owner).certain:
            needs.append(assumes(f"`{text}` must be a tensor", only=ShowsOnly.NO_TENSOR))
        if leaf.loose == "select":
            if (counts or len(leaves) > 1) and not have_one_shape(context, found.mask, leaf.owner):
                shaped[f"`{text}`"] = None
            continue
        kind = fit(context, found.mask, leaf.owner)
        if kind is Fit.ROWS:
            raise Declined(f"`{mask}` has fewer dimensions than `{text}`, so it selects whole rows")
        if leaf.loose == "indices" and not have_one_shape(context, found.mask, leaf.owner):
            shaped[f"`{text}`"] = None
        elif kind is Fit.OPEN:
            if nothing_known and not have_common_root(context, found.mask, leaf.owner):
                raise Declined(f"nothing says that `{mask}` has as many dimensions as `{text}`: it may select rows")
            loose[f"`{text}`"] = None
        elif kind is Fit.COUNTED:
            # An index may be on the CPU, an argument of `torch.where` may not.
            placed[f"`{text}`"] = None
    if found.numbers:
        needs.append(assumes(f"{' and '.join(f'`{text}`' for text in found.numbers)} must be a number"))
    if loose:
        needs.append(assumes(f"`{mask}` must have as many dimensions as {' and '.join(loose)}"))
    if placed:
        needs.append(assumes(f"`{mask}` must be on the same device as {' and '.join(placed)}", only=ShowsOnly.DEVICES))
    if shaped:
        needs.append(assumes(f"`{mask}` must have the same shape as {' and '.join(shaped)}"))
    return list(dict.fromkeys([*needs, *bool_needed(context, found.mask)]))


def is_bool_tensor(context: RewriteContext, mask: cst.BaseExpression) -> bool:
    """Whether a value is known to be a bool tensor."""
    fact = context.fact(mask)
    return fact.is_tensor and fact.certain and is_bool(context, mask)


def bool_needed(context: RewriteContext, mask: cst.BaseExpression) -> list[Difference]:
    """The assumption that a value is a bool tensor, if it is not known.  Declines if the code contradicts it."""
    if is_bool_tensor(context, mask):
        return []
    text = plain(context, mask)
    if isinstance(mask, cst.Name) and may_be_index(mask, context.around):
        raise Declined(f"`{text}` may hold indices instead of a mask, as the function says")
    return [assumes(f"`{text}` must be a bool tensor")]


def bends_gradients(context: RewriteContext, node: cst.BaseExpression, found: Masked) -> bool:
    """Whether NaN or infinity outside the mask may reach the gradients: ``0 * nan`` is NaN."""
    return found.bends and may_require_gradient(context, node)


def may_require_gradient(context: RewriteContext, node: cst.BaseExpression) -> bool:
    """Whether a value is not known to be an integer or bool tensor."""
    fact = context.fact(node)
    return not (fact.certain and fact.dtype in ("bool", "int"))


_MEAN_IN_FLOAT16 = differs("the mean of a float16 tensor is summed in float16, which may overflow", Effect.VALUES)
COUNT_IN_FLOAT16 = differs("a count above 65504 does not fit in float16", Effect.VALUES)
_MEAN_OF_INTEGERS = differs(
    "the mean of an integer or bool tensor is computed instead of raising an error", Effect.NO_LONGER_RAISES
)
NAN_GRADIENTS = differs("values outside the mask can make gradients NaN", Effect.GRADIENTS)
_ROUNDING = differs("the numbers are added in a different order, so the last digits may differ", Effect.VALUES)


def rounding(context: RewriteContext, summed: Iterable[cst.BaseExpression]) -> list[Difference]:
    """How a sum over all elements changes the last digits: not at all if the elements are not floats."""
    facts = [context.fact(one) for one in summed]
    exact = all(fact.certain and fact.dtype in ("int", "bool") for fact in facts)
    return [] if exact else [_ROUNDING]


def mean_hazards(context: RewriteContext, averaged: Iterable[cst.BaseExpression]) -> list[Difference]:
    """The differences if a mean becomes a sum and a division."""
    facts = [context.fact(one) for one in averaged]
    floats = all(fact.certain and fact.dtype == "float" for fact in facts)
    return [_MEAN_IN_FLOAT16, *([] if floats else [_MEAN_OF_INTEGERS])]


def beside(left: cst.BaseExpression, operator: cst.BaseBinaryOp, right: cst.BaseExpression) -> cst.BinaryOperation:
    """``left operator right``; ``~m`` and ``-2`` on the right need no parentheses."""
    made = build.copied(right) if isinstance(right, cst.UnaryOperation) else build.operand(right)
    return cst.BinaryOperation(build.operand(left), operator, made)


def in_place_of(context: RewriteContext, node: cst.BaseExpression, made: cst.BaseExpression) -> cst.BaseExpression:
    """An expression that can replace a node: a quotient in parentheses if needed."""
    above = context.parent(node)
    if not isinstance(made, cst.BinaryOperation):
        return made
    if isinstance(above, cst.BinaryOperation):
        looser = isinstance(above.operator, cst.Add | cst.Subtract)
        on_the_left = above.left is node and isinstance(above.operator, cst.Multiply | cst.Divide)
        return made if looser or on_the_left else build.operand(made)
    closer = isinstance(above, cst.Attribute | cst.UnaryOperation | cst.Subscript | cst.Await)
    return build.operand(made) if closer else made


def filled(
    context: RewriteContext, mask: cst.BaseExpression, node: cst.BaseExpression, off: cst.BaseExpression
) -> cst.Call:
    """``torch.where(mask, node, off)``."""
    return build.call(context.imported("torch.where"), mask, node, off)


def zero(context: RewriteContext, node: cst.BaseExpression) -> cst.BaseExpression:
    """A zero that does not change the dtype of an expression."""
    fact = context.fact(node)
    return build.expression("0.0" if fact.dtype == "float" and fact.certain else "0")
