"""How many dimensions a tensor has, next to another one: bounds that follow from the code alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

import libcst as cst
import libcst.matchers as m

from breakscan.rewrite_support.assignments import origin
from breakscan.rewrite_support.context import RewriteContext
from breakscan.rewrite_support.purity import called

Key = tuple[str, cst.CSTNode | None]
"""A name or attribute, and where its value comes from."""

MOST_STEPS = 12
_NONE: frozenset[Key] = frozenset()
_NUMBERS = frozenset({"constant", "drawn", "number", "shape"})

KEEPS = frozenset(
    {
        *("abs", "asin", "atan", "bfloat16", "bitwise_not", "bool", "ceil", "clone", "contiguous", "cos", "cosh"),
        *("cpu", "cuda", "cumprod", "cumsum", "detach", "double", "empty_like", "erf", "exp", "exp2", "expm1", "flip"),
        *("float", "floor", "frac", "full_like", "gelu", "half", "int", "isfinite", "isinf", "isnan", "isneginf"),
        *(
            "isposinf",
            "leaky_relu",
            "log",
            "log10",
            "log1p",
            "log2",
            "log_softmax",
            "logical_not",
            "logit",
            "logsigmoid",
        ),
        *("long", "nan_to_num", "neg", "negative", "ones_like", "permute", "rand_like", "randn_like"),
        *(
            "reciprocal",
            "relu",
            "requires_grad_",
            "roll",
            "round",
            "rsqrt",
            "sigmoid",
            "sign",
            "silu",
            "sin",
            "sinh",
            "softmax",
        ),
        *("softplus", "sqrt", "square", "swapaxes", "tan", "tanh", "to", "transpose", "tril", "triu", "trunc", "type"),
        *("zeros_like", "movedim", "signbit", "short", "masked_fill_", "fill_", "zero_", "copy_", "clamp_"),
    }
)
"""Functions and methods whose result has as many dimensions as their first tensor."""
BROADCASTS = frozenset(
    {
        *("add", "atan2", "bitwise_and", "bitwise_or", "bitwise_xor", "clamp", "clip", "div", "divide", "eq", "fmod"),
        *("ge", "greater", "greater_equal", "gt", "isclose", "le", "less", "less_equal", "logical_and", "logical_or"),
        *("logical_xor", "lt", "masked_fill", "maximum", "minimum", "mul", "multiply", "ne", "not_equal", "pow"),
        *("remainder", "sub", "subtract", "true_divide", "where", "fmax", "fmin", "hypot", "lerp", "addcmul"),
    }
)
"""Those that have as many as the largest of their arguments."""
_REDUCES = frozenset({"all", "amax", "amin", "any", "argmax", "argmin", "mean", "norm", "prod", "std", "sum", "var"})
_SIZED = frozenset(
    {"zeros", "ones", "empty", "full", "rand", "randn", "new_zeros", "new_ones", "new_empty", "new_full"}
)
_FIXED = {"arange": 1, "linspace": 1, "bincount": 1, "eye": 2, "scalar_tensor": 0}


class Fit(Enum):
    """Whether an index by a mask takes single elements, or whole rows."""

    ELEMENTS = "elements"
    COUNTED = "elements, but the mask is not computed from what it picks from"
    OPEN = "open"
    ROWS = "rows"


@dataclass(frozen=True, slots=True)
class TensorDims:
    """Bounds of a number of dimensions: numbers, and other tensors' numbers of dimensions.

    At least ``least`` and as many as each of ``over``; at most ``most`` and as many as each of ``under``; fewer than
    each of ``below``.
    """

    least: int = 0
    most: int | None = None
    over: frozenset[Key] = _NONE
    under: frozenset[Key] = _NONE
    below: frozenset[Key] = _NONE


_SCALAR = TensorDims(0, 0)


def fit(spot: RewriteContext, mask: cst.BaseExpression, owner: cst.BaseExpression) -> Fit:
    """What ``owner[mask]`` takes.

    That it raises no error shows that the mask has no more dimensions than the owner, so a lower bound is enough.
    """
    of_mask, of_owner = rank(spot, mask), rank(spot, owner)
    if of_mask.over & of_owner.under:
        return Fit.ELEMENTS
    if of_owner.most is not None and of_mask.least >= of_owner.most:
        return Fit.COUNTED
    if (of_mask.most is not None and of_mask.most < of_owner.least) or of_mask.below & of_owner.over:
        return Fit.ROWS
    return Fit.OPEN


def rank(spot: RewriteContext, node: cst.BaseExpression, steps: int = MOST_STEPS) -> TensorDims:
    """What is known of the number of dimensions of an expression's value."""
    fact = spot.fact(node)
    if fact.kind in _NUMBERS or isinstance(node, cst.BaseNumber) or (fact.is_tensor and fact.zero_dim):
        return _SCALAR
    if not steps:
        return TensorDims()
    if isinstance(node, cst.Name | cst.Attribute):
        return _of_name(spot, node, steps - 1)
    if isinstance(node, cst.UnaryOperation) and isinstance(node.operator, cst.BitInvert | cst.Minus | cst.Plus):
        return rank(spot, node.expression, steps - 1)
    if isinstance(node, cst.BinaryOperation) and not isinstance(node.operator, cst.MatrixMultiply):
        return _largest([rank(spot, one, steps - 1) for one in (node.left, node.right)])
    if isinstance(node, cst.Comparison) and len(node.comparisons) == 1:
        return _largest([rank(spot, one, steps - 1) for one in (node.left, node.comparisons[0].comparator)])
    if isinstance(node, cst.Subscript):
        return _of_part(spot, node, steps - 1)
    if isinstance(node, cst.Call):
        return _of_call(spot, node, steps - 1)
    return TensorDims()


def key(spot: RewriteContext, node: cst.BaseExpression) -> Key | None:
    """What tells a name, or an attribute that the function does not assign, from others of that text."""
    first: cst.BaseExpression = node
    while isinstance(first, cst.Attribute):
        if _is_assigned(spot, first.attr.value):
            return None
        first = first.value
    return (spot.code(node), origin(spot, first).anchor) if isinstance(first, cst.Name) else None


def _is_assigned(spot: RewriteContext, attribute: str) -> bool:
    target = m.Attribute(attr=m.Name(attribute))
    found = m.AssignTarget(target=target) | m.AugAssign(target=target) | m.AnnAssign(target=target)
    return bool(m.findall(spot.function, found))


def _of_name(spot: RewriteContext, node: cst.Name | cst.Attribute, steps: int) -> TensorDims:
    if isinstance(node, cst.Attribute) and node.attr.value in ("data", "mT", "real", "imag"):
        return rank(spot, node.value, steps)
    found = key(spot, node)
    if found is None:
        return TensorDims()
    value = origin(spot, node).value if isinstance(node, cst.Name) else None
    known = rank(spot, value, steps) if value is not None else TensorDims()
    return TensorDims(known.least, known.most, known.over | {found}, known.under | {found}, known.below)


def _largest(ranks: Sequence[TensorDims]) -> TensorDims:
    """Of a broadcast: as many dimensions as the operand with the most."""
    if not ranks:
        return TensorDims()
    sized = [one for one in ranks if one.most != 0] or list(ranks)
    mosts = [one.most for one in ranks]
    return TensorDims(
        max(one.least for one in ranks),
        None if None in mosts else max(most for most in mosts if most is not None),
        frozenset().union(*(one.over for one in ranks)),
        frozenset.intersection(*(one.under for one in sized)),
        frozenset.intersection(*(one.below for one in sized)),
    )


def _of_part(spot: RewriteContext, node: cst.Subscript, steps: int) -> TensorDims:
    """Of an index: every number takes one dimension away, and a slice none."""
    if not spot.fact(node.value).is_tensor:
        return TensorDims()
    base = rank(spot, node.value, steps)
    taken = 0
    for element in node.slice:
        if isinstance(element.slice, cst.Slice) or m.matches(element.slice, m.Index(m.Ellipsis())):
            continue
        if not isinstance(element.slice, cst.Index) or not _is_one(spot, element.slice.value):
            return TensorDims()
        taken += 1
    most = None if base.most is None else max(base.most - taken, 0)
    least = max(base.least - taken, 0)
    if not taken:
        return base
    return TensorDims(least, most, _NONE, base.under, base.below | base.under)


def _is_one(spot: RewriteContext, index: cst.BaseExpression) -> bool:
    return spot.fact(index).is_number or m.matches(
        index, m.Integer() | m.UnaryOperation(operator=m.Minus(), expression=m.Integer())
    )


def _of_call(spot: RewriteContext, node: cst.Call, steps: int) -> TensorDims:
    function, method = called(spot, node)
    if method is None and not (function or "").startswith("torch."):
        return TensorDims()
    name = (method or function or "").rpartition(".")[2]
    positional = [arg.value for arg in node.args if arg.keyword is None and not arg.star]
    if method is not None and isinstance(node.func, cst.Attribute):
        positional.insert(0, node.func.value)
    if any(arg.star for arg in node.args):
        return TensorDims()
    if name in BROADCASTS:
        operands = positional + [
            arg.value for arg in node.args if arg.keyword is not None and _may_be_tensor(spot, arg)
        ]
        return _largest([rank(spot, one, steps) for one in operands])
    if name in KEEPS and positional:
        return rank(spot, positional[0], steps)
    if name in _FIXED:
        return TensorDims(_FIXED[name], _FIXED[name])
    if name in _SIZED:
        return _of_size(spot, node, name, positional[1:] if name.startswith("new_") else positional, steps)
    if method is None:
        return TensorDims()
    return _of_method(spot, node, method, positional, steps)


def _may_be_tensor(spot: RewriteContext, arg: cst.Arg) -> bool:
    return spot.fact(arg.value).kind in ("tensor", "unknown") and not isinstance(arg.value, cst.BaseNumber)


def _of_method(
    spot: RewriteContext, node: cst.Call, name: str, positional: list[cst.BaseExpression], steps: int
) -> TensorDims:
    receiver, given = positional[0], positional[1:]
    named = {arg.keyword.value for arg in node.args if arg.keyword is not None}
    base = rank(spot, receiver, steps)
    if name in ("view", "reshape") and not named:
        return _of_shape(spot, given, steps)
    if name in ("flatten", "ravel") and not given and not named:
        return TensorDims(1, 1)
    if name in ("expand_as", "view_as", "reshape_as", "type_as") and len(given) == 1:
        return rank(spot, receiver if name == "type_as" else given[0], steps)
    if name == "expand" and not named:
        return TensorDims(max(base.least, len(given)), None, base.over)
    if name == "unsqueeze":
        return TensorDims(base.least + 1, None if base.most is None else base.most + 1, base.over)
    if name == "squeeze":
        return TensorDims(0, base.most, _NONE, base.under, base.below)
    if name in _REDUCES and "keepdim" not in named and len(given) < 2:
        if not given and not named & {"dim", "axis"}:
            return _SCALAR
        most = None if base.most is None else max(base.most - 1, 0)
        return TensorDims(0, most, _NONE, base.under, base.below | base.under)
    return TensorDims()


def _of_size(
    spot: RewriteContext, node: cst.Call, name: str, sizes: list[cst.BaseExpression], steps: int
) -> TensorDims:
    by_name = next((arg.value for arg in node.args if arg.keyword is not None and arg.keyword.value == "size"), None)
    if by_name is not None:
        return _of_shape(spot, [by_name], steps)
    return _of_shape(spot, sizes[:1] if name.endswith("full") else sizes, steps)


def _of_shape(spot: RewriteContext, sizes: list[cst.BaseExpression], steps: int) -> TensorDims:
    """Of a tensor with the sizes that a call gives."""
    if len(sizes) > 1:
        return TensorDims(len(sizes), len(sizes))
    if not sizes:
        return TensorDims()
    (size,) = sizes
    if isinstance(size, cst.Tuple | cst.List):
        stars = any(isinstance(element, cst.StarredElement) for element in size.elements)
        return TensorDims() if stars else TensorDims(len(size.elements), len(size.elements))
    if _is_one(spot, size):
        return TensorDims(1, 1)
    if m.matches(size, m.Attribute(attr=m.Name("shape"))):
        return rank(spot, size.value, steps)  # type: ignore[attr-defined]
    if m.matches(size, m.Call(func=m.Attribute(attr=m.Name("size")), args=[])):
        return rank(spot, size.func.value, steps)  # type: ignore[attr-defined]
    return TensorDims()
