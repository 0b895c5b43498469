"""Whether two expressions have the same shape and dtype, as far as their text tells."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import libcst as cst

from breakscan.facts import Fact
from breakscan.rewrite_support.context import RewriteContext
from breakscan.rewrite_support.names import read
from breakscan.rewrite_support.purity import called

Roots = frozenset[str]
_NONE: Roots = frozenset()
_A_FLOAT = "a float"
_AN_INT = "an integer"

KEEPS_DTYPE = frozenset(
    {
        *("add", "sub", "mul", "neg", "positive", "clamp", "clip", "clamp_min", "clamp_max", "clone", "contiguous"),
        *("detach", "flip", "masked_fill", "maximum", "minimum", "nan_to_num", "relu", "roll"),
        *("where", "zeros_like", "ones_like", "full_like", "empty_like", "rand_like", "randn_like", "square"),
        *("subtract", "multiply", "negative", "round", "floor", "ceil", "trunc", "sign", "relu6", "hardtanh"),
    }
)
"""Functions and methods whose result has the broadcast shape and the promoted dtype of their arguments."""
MAKES_FLOAT = frozenset(
    {
        *("sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh", "sigmoid", "exp", "expm1", "log"),
        *(
            "exp2",
            "log1p",
            "log2",
            "log10",
            "sqrt",
            "rsqrt",
            "erf",
            "erfc",
            "gelu",
            "silu",
            "softplus",
            "softmax",
            "mish",
        ),
        *("log_softmax", "leaky_relu", "elu", "selu", "logsigmoid", "reciprocal", "div", "divide", "true_divide"),
        *("normalize", "softsign", "tanhshrink", "hardswish", "hardsigmoid", "atan2", "lerp"),
    }
)
"""The same, but that whole numbers become floats."""
MAKES_BOOL = frozenset(
    {
        *("isnan", "isinf", "isfinite", "logical_and", "logical_or", "logical_not", "logical_xor", "eq", "ne", "lt"),
        *("gt", "le", "ge", "isclose", "isposinf", "isneginf", "signbit"),
    }
)
CONVERTS = {"float": "torch.float32", "double": "torch.float64", "half": "torch.float16", "bfloat16": "torch.bfloat16"}
CONVERTS |= {"long": "torch.int64", "int": "torch.int32", "bool": "torch.bool"}
LIKE = frozenset({"zeros_like", "ones_like", "full_like", "empty_like", "rand_like", "randn_like"})
FILLED = frozenset({"tensor", "scalar_tensor"})


CHANGES_SHAPE = frozenset(
    {
        *("amax", "amin", "argmax", "argmin", "diagonal", "expand", "flatten", "mean", "movedim", "permute", "prod"),
        *("repeat", "reshape", "select", "squeeze", "std", "sum", "t", "tile", "transpose", "unflatten", "unsqueeze"),
        *("var", "view"),
    }
)
"""Functions and methods whose result seldom has the shape of their first tensor."""


@dataclass(frozen=True, slots=True)
class ShapeDtypeKind:
    """Shape and dtype of a value.

    ``shape`` are the texts whose shapes broadcast to its own; none: it has no dimension.  ``dtype`` are the texts whose
    dtypes promote to its own, by their class where that is known.
    """

    shape: Roots
    dtype: frozenset[tuple[str, str | None]]


def kind_of(spot: RewriteContext, node: cst.BaseExpression, names: Mapping[str, ShapeDtypeKind]) -> ShapeDtypeKind:
    """The kind of an expression.  ``names`` are those that stand for something else than before."""
    return _Kinds(spot, names).of(node)


def kind_of_name(name: str, fact: Fact) -> ShapeDtypeKind:
    """The kind of what a name holds."""
    return _root(name, fact)


def unlike(one: ShapeDtypeKind, other: ShapeDtypeKind) -> list[str]:
    """What has to hold for two values to have the same shape and dtype, in words; empty where they do."""
    found = []
    if one.shape != other.shape:
        found.append("sides of different shapes would be broadcast")
    if one.dtype != other.dtype:
        found.append("sides of different dtypes would give the wider one")
    return found


@dataclass(frozen=True, slots=True)
class Reshaped:
    """What an expression is made from, and what changes its shape on the way."""

    base: str
    steps: tuple[str, ...]


def reshaped(spot: RewriteContext, node: cst.BaseExpression) -> Reshaped:
    """How the shape of an expression comes about: one tensor behind other steps has another shape."""
    steps: list[str] = []
    while spot.tree.holds(node):
        if isinstance(node, cst.Subscript):
            steps.append(", ".join(spot.code(index) for index in node.slice))
            node = node.value
            continue
        if not isinstance(node, cst.Call):
            break
        function, method = called(spot, node)
        receiver, given = _receiver(node, method, function)
        name = (method or function or "").rpartition(".")[2]
        if receiver is None or name not in CHANGES_SHAPE | KEEPS_DTYPE | MAKES_FLOAT:
            break
        if name in CHANGES_SHAPE:
            steps.append(f"{name} {', '.join(spot.code(arg).rstrip(', ') for arg in given)}")
        node = receiver
    return Reshaped(spot.code(node).strip("()"), tuple(steps))


def _receiver(
    node: cst.Call, method: str | None, function: str | None
) -> tuple[cst.BaseExpression | None, Sequence[cst.Arg]]:
    """The first tensor of a call, and the other arguments."""
    if method is not None and isinstance(node.func, cst.Attribute):
        return node.func.value, node.args
    if (function or "").startswith("torch.") and node.args and node.args[0].keyword is None:
        return node.args[0].value, node.args[1:]
    return None, ()


def _root(text: str, fact: Fact) -> ShapeDtypeKind:
    dtype = ("torch.bool", "bool") if fact.dtype == "bool" else (text, fact.dtype)
    return ShapeDtypeKind(_NONE if fact.zero_dim else frozenset({text}), frozenset({dtype}))


class _Kinds:
    def __init__(self, spot: RewriteContext, names: Mapping[str, ShapeDtypeKind]) -> None:
        self.spot = spot
        self.names = names

    def of(self, node: cst.BaseExpression) -> ShapeDtypeKind:
        fact = self.spot.fact(node)
        made: ShapeDtypeKind | None = None
        if isinstance(node, cst.Name) and (known := self.names.get(node.value)) is not None:
            return known
        if isinstance(node, cst.BinaryOperation):
            made = self._operation(node)
        elif isinstance(node, cst.UnaryOperation) and not isinstance(node.operator, cst.Not):
            made = self.of(node.expression)
        elif isinstance(node, cst.Comparison):
            sides = [self.of(node.left), *(self.of(one.comparator) for one in node.comparisons)]
            made = ShapeDtypeKind(_shapes(sides), frozenset({("torch.bool", "bool")}))
        elif isinstance(node, cst.Call):
            made = self._call(node)
        elif isinstance(node, cst.BaseNumber) or fact.is_number or fact.kind in ("constant", "shape"):
            return self._number(node, fact)
        elif _is_limit(self.spot, node):
            return ShapeDtypeKind(_NONE, frozenset({(_A_FLOAT, "number")}))
        made = made or _root(self._text(node), fact)
        return ShapeDtypeKind(_NONE, made.dtype) if fact.zero_dim else made

    def _text(self, node: cst.BaseExpression) -> str:
        """A text that is the same only for the same value."""
        renamed = sorted(name for name in self.names if name in read(node))
        code = self.spot.code(node)
        return f"{code} with {', '.join(renamed)} of {id(self.names)}" if renamed else code

    def _number(self, node: cst.BaseExpression, fact: Fact) -> ShapeDtypeKind:
        literal = fact.literal
        if isinstance(node, cst.Integer) or fact.kind == "shape" or type(literal) is int:
            return ShapeDtypeKind(_NONE, frozenset({(_AN_INT, "number")}))
        if isinstance(node, cst.Float) or isinstance(literal, float):
            return ShapeDtypeKind(_NONE, frozenset({(_A_FLOAT, "number")}))
        return ShapeDtypeKind(_NONE, frozenset({(f"the number {self.spot.code(node)}", "number")}))

    def _operation(self, node: cst.BinaryOperation) -> ShapeDtypeKind | None:
        arithmetic = cst.Add | cst.Subtract | cst.Multiply | cst.Divide | cst.Power | cst.Modulo | cst.FloorDivide
        if not isinstance(node.operator, arithmetic | cst.BitAnd | cst.BitOr | cst.BitXor):
            return None
        return self._promoted([node.left, node.right], floats=isinstance(node.operator, cst.Divide))

    def _call(self, node: cst.Call) -> ShapeDtypeKind | None:
        function, method = called(self.spot, node)
        name = (method or function or "").rpartition(".")[2]
        if method is None and not (function or "").startswith("torch."):
            return None
        named = {arg.keyword.value: arg.value for arg in node.args if arg.keyword is not None}
        if any(arg.star for arg in node.args):
            return None
        given = [arg.value for arg in node.args if arg.keyword is None]
        if method is not None:
            given.insert(0, cst.ensure_type(node.func, cst.Attribute).value)
        first = given[0] if given else named.get("input")
        if first is None:
            return None
        if name in LIKE:
            kind = self.of(first)
            return self._with_dtype(kind, named.get("dtype"))
        if name in FILLED and method is None:
            return self._filled(node, first, named.get("dtype"))
        if method in CONVERTS and len(given) == 1 and not named:
            return ShapeDtypeKind(self.of(first).shape, frozenset({(CONVERTS[method], _class(CONVERTS[method]))}))
        if method in ("to", "type_as"):
            return self._converted(given, named)
        operands = given
        if name in ("softmax", "log_softmax", "flip", "roll", "nan_to_num", "round", "normalize"):
            operands = given[:1]
        elif name in ("clamp", "clip"):
            operands = [*given, *(named[key] for key in ("min", "max") if key in named)]
        if name == "where" and len(given) == 3:
            condition, *sides = (self.of(one) for one in given)
            return ShapeDtypeKind(_shapes([condition, *sides]), _dtypes(sides))
        if "dtype" in named or "out" in named:
            return None
        if name in MAKES_BOOL:
            return ShapeDtypeKind(_shapes([self.of(one) for one in operands]), frozenset({("torch.bool", "bool")}))
        if name in KEEPS_DTYPE and name != "where":
            return self._promoted(operands, floats=False)
        return self._promoted(operands, floats=True) if name in MAKES_FLOAT else None

    def _with_dtype(self, kind: ShapeDtypeKind, dtype: cst.BaseExpression | None) -> ShapeDtypeKind:
        if dtype is None:
            return kind
        return ShapeDtypeKind(kind.shape, self._dtype(dtype))

    def _dtype(self, dtype: cst.BaseExpression) -> frozenset[tuple[str, str | None]]:
        if isinstance(dtype, cst.Attribute) and dtype.attr.value == "dtype":
            return self.of(dtype.value).dtype
        name = self.spot.dotted(dtype) or self.spot.code(dtype)
        name = {"torch.float": "torch.float32", "torch.long": "torch.int64"}.get(name, name)
        return frozenset({(name, _class(name))})

    def _filled(
        self, node: cst.Call, value: cst.BaseExpression, dtype: cst.BaseExpression | None
    ) -> ShapeDtypeKind | None:
        """``torch.tensor(0.0)``."""
        fact = self.spot.fact(value)
        if not isinstance(value, cst.BaseNumber | cst.UnaryOperation) and not fact.is_number:
            return None
        made = self._number(value, fact)
        if isinstance(value, cst.UnaryOperation):
            made = self._number(value.expression, fact)
        whole = (_AN_INT, "number") in made.dtype
        own = frozenset({("torch.int64", "int")} if whole else {("the default dtype", "float")})
        return ShapeDtypeKind(_NONE, own if dtype is None else self._dtype(dtype))

    def _converted(
        self, given: list[cst.BaseExpression], named: Mapping[str, cst.BaseExpression]
    ) -> ShapeDtypeKind | None:
        """``x.to(other)``, ``x.to(dtype)``, ``x.to(dtype=..., device=...)``."""
        kind = self.of(given[0])
        if "dtype" in named:
            return self._with_dtype(kind, named["dtype"])
        if len(given) != 2:
            return None
        other = given[1]
        if self.spot.fact(other).kind == "tensor":
            return ShapeDtypeKind(kind.shape, self.of(other).dtype)
        text = self.spot.code(other)
        if text.endswith(".dtype") or _class(self.spot.dotted(other) or ""):
            return self._with_dtype(kind, other)
        return kind if text.endswith("device") else None

    def _promoted(self, operands: list[cst.BaseExpression], *, floats: bool) -> ShapeDtypeKind:
        kinds = [self.of(one) for one in operands]
        dtypes = _dtypes(kinds)
        if floats and not any(known == "float" for _, known in dtypes):
            dtypes |= {(_A_FLOAT, "number")}
        return ShapeDtypeKind(_shapes(kinds), _settled(dtypes))


def _shapes(kinds: list[ShapeDtypeKind]) -> Roots:
    return frozenset(root for kind in kinds for root in kind.shape)


def _dtypes(kinds: list[ShapeDtypeKind]) -> frozenset[tuple[str, str | None]]:
    return frozenset(root for kind in kinds for root in kind.dtype)


def _settled(dtypes: frozenset[tuple[str, str | None]]) -> frozenset[tuple[str, str | None]]:
    """Without the Python numbers that change nothing beside what else is there."""
    classes = {known for _, known in dtypes}
    if "float" in classes:
        return frozenset(root for root in dtypes if root[1] != "number")
    if "int" in classes:
        return frozenset(root for root in dtypes if root != (_AN_INT, "number"))
    return dtypes


def _class(dtype: str) -> str | None:
    name = dtype.removeprefix("torch.")
    if not dtype.startswith("torch."):
        return None
    if name.startswith(("float", "bfloat", "double", "half")):
        return "float"
    if name.startswith(("int", "uint", "long", "short")):
        return "int"
    return "bool" if name == "bool" else None


def _is_limit(spot: RewriteContext, node: cst.BaseExpression) -> bool:
    """Whether it is ``torch.finfo(dtype).max`` or a kin of it."""
    return (
        isinstance(node, cst.Attribute)
        and isinstance(node.value, cst.Call)
        and spot.dotted(node.value.func) == "torch.finfo"
        and node.attr.value in ("eps", "max", "min", "tiny", "smallest_normal", "resolution")
    )
