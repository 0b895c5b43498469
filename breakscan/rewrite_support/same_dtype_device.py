"""Whether two tensors have one dtype and live on one device, because both are computed from the same one."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

import libcst as cst

from breakscan.rewrite_support.assignments import origin
from breakscan.rewrite_support.context import RewriteContext
from breakscan.rewrite_support.numbers import is_number
from breakscan.rewrite_support.purity import called
from breakscan.rewrite_support.tensor_dims import Key, key

MOST_STEPS = 12
_KEEP = frozenset(
    {
        *("abs", "amax", "amin", "clone", "contiguous", "detach", "diagonal", "expand", "flatten", "flip", "max"),
        *("median", "min", "neg", "permute", "relu", "reshape", "roll", "select", "squeeze", "t", "transpose"),
        *("unsqueeze", "view"),
    }
)
"""Functions and methods that keep any dtype."""
_KEEP_FLOATS = frozenset(
    {
        *("asin", "atan", "ceil", "clamp", "cos", "cosh", "cumsum", "erf", "exp", "expm1", "floor", "frac", "log"),
        *("log10", "log1p", "log2", "logsumexp", "mean", "nan_to_num", "norm", "prod", "reciprocal", "round", "rsqrt"),
        *("sigmoid", "sign", "sin", "sinh", "softmax", "sqrt", "square", "std", "sum", "tan", "tanh", "trunc", "var"),
    }
)
"""Those that keep the dtype of floats, and make floats or int64 of other numbers."""
_KEEP_DEVICE = frozenset(
    {
        *("all", "any", "argmax", "argmin", "argsort", "bool", "count_nonzero", "double", "eq", "float", "ge", "gt"),
        *("half", "int", "isfinite", "isinf", "isnan", "le", "logical_not", "long", "lt", "ne", "nonzero", "numel"),
    }
)
"""Those whose result is on the device of their tensor, with a dtype of its own."""


class _Dtype(IntEnum):
    """What has become of a dtype on the way: it is kept, it is if it is a float, or it is lost."""

    KEPT = 0
    KEPT_OF_FLOATS = 1
    LOST = 2


@dataclass(frozen=True, slots=True)
class _Root:
    """What a tensor is computed from."""

    key: Key
    dtype: _Dtype = _Dtype.KEPT

    def through(self, dtype: _Dtype) -> _Root:
        return _Root(self.key, max(self.dtype, dtype))


def on_one_device(spot: RewriteContext, one: cst.BaseExpression, other: cst.BaseExpression) -> bool:
    """Whether two tensors live on the same device for sure."""
    first, second = _root(spot, one), _root(spot, other)
    return first is not None and second is not None and first.key == second.key


def of_one_dtype(spot: RewriteContext, one: cst.BaseExpression, other: cst.BaseExpression) -> bool:
    """Whether two tensors have the same dtype for sure."""
    first, second = _root(spot, one), _root(spot, other)
    if first is None or second is None or first.key != second.key:
        return False
    worst = max(first.dtype, second.dtype)
    floats = spot.fact(one).dtype == "float" and spot.fact(other).dtype == "float"
    return worst is _Dtype.KEPT or (worst is _Dtype.KEPT_OF_FLOATS and floats)


def _root(spot: RewriteContext, node: cst.BaseExpression, steps: int = MOST_STEPS) -> _Root | None:
    if not steps:
        return None
    if isinstance(node, cst.Name):
        found = origin(spot, node)
        through = _root(spot, found.value, steps - 1) if found.value is not None else None
        return through or _Root((node.value, found.anchor))
    if isinstance(node, cst.Attribute):
        if node.attr.value in ("T", "mT", "data", "values"):
            return _root(spot, node.value, steps - 1)
        found_key = key(spot, node)
        return _Root(found_key) if found_key is not None else None
    if isinstance(node, cst.UnaryOperation) and isinstance(node.operator, cst.Minus | cst.Plus | cst.BitInvert):
        return _root(spot, node.expression, steps - 1)
    if isinstance(node, cst.Subscript):
        return _root(spot, node.value, steps - 1)
    if isinstance(node, cst.BinaryOperation):
        return _of_two(spot, node.left, node.right, _Dtype.KEPT_OF_FLOATS, steps - 1)
    if isinstance(node, cst.Comparison) and len(node.comparisons) == 1:
        return _of_two(spot, node.left, node.comparisons[0].comparator, _Dtype.LOST, steps - 1)
    if isinstance(node, cst.Call):
        return _of_call(spot, node, steps - 1)
    return None


def _of_two(
    spot: RewriteContext, left: cst.BaseExpression, right: cst.BaseExpression, dtype: _Dtype, steps: int
) -> _Root | None:
    if is_number(spot, left) or is_number(spot, right):
        root = _root(spot, left if is_number(spot, right) else right, steps)
        return root.through(dtype) if root is not None else None
    first, second = _root(spot, left, steps), _root(spot, right, steps)
    if first is None or second is None or first.key != second.key:
        return None
    return first.through(max(dtype, second.dtype))


def _of_call(spot: RewriteContext, node: cst.Call, steps: int) -> _Root | None:
    function, method = called(spot, node)
    if any(arg.keyword is not None and arg.keyword.value in ("dtype", "device", "out") for arg in node.args):
        return None
    if method is not None and isinstance(node.func, cst.Attribute):
        of, name, others = node.func.value, method, node.args
    elif (function or "").startswith("torch.") and node.args and node.args[0].keyword is None:
        of, name, others = node.args[0].value, (function or "").rpartition(".")[2], node.args[1:]
    else:
        return None
    if any(spot.fact(arg.value).is_tensor for arg in others):
        return None
    root = _root(spot, of, steps)
    if root is None or name not in _KEEP | _KEEP_FLOATS | _KEEP_DEVICE:
        return None
    kept = _Dtype.KEPT_OF_FLOATS if name in _KEEP_FLOATS else _Dtype.LOST if name in _KEEP_DEVICE else _Dtype.KEPT
    return root.through(kept)
