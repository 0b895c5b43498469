"""``np.ceil(np.log1p(n)).astype("int").item()`` → ``math.ceil(math.log1p(n))``, on sizes and numbers.

Dynamo traces NumPy as tensor operations, even on plain numbers, and reads the result from a tensor; ``math`` is
computed during tracing.  Both give the same double, except that ``math`` raises where NumPy gives infinity or NaN:
sizes are never negative, so this concerns only the logarithm of zero.
"""

from __future__ import annotations

import libcst as cst

from breakscan.fix.support import matchers as m
from breakscan.fix.support.assignments import defined
from breakscan.fix.support.build import call, copied
from breakscan.fix.support.called import only_argument
from breakscan.fix.support.context import RewriteContext
from breakscan.fix.support.difference import Difference, Effect, differs
from breakscan.fix.support.edit import Declined, Edit, OtherForm
from breakscan.fix.support.shapes import rank_of

_ROUNDING = frozenset({"ceil", "floor"})
_ANY_SIZE = frozenset({"log1p", "sqrt"})
_NOT_OF_NOTHING = frozenset({"log", "log2", "log10"})
_DOMAIN = differs("the logarithm of zero raises instead of giving minus infinity", Effect.RAISES)
_OF_NOTHING = differs("`np.prod` of the shape of a 0-d tensor is a float, not an integer", Effect.TYPES)
_LARGEST = 1_000_000
"""With larger numbers, the result may not fit in an integer of NumPy."""
_WHOLE = m.SimpleString(value='"int"') | m.SimpleString(value="'int'") | m.Name("int")
_ASTYPE_INT = m.Call(func=m.Attribute(attr=m.Name("astype")), args=[m.Arg(_WHOLE)])
_ARITHMETIC = cst.Add | cst.Multiply | cst.Divide | cst.FloorDivide
_LENGTH = m.Call(func=m.Name("len"), args=[m.Arg()])
_SHAPE = m.Attribute(attr=m.Name("shape")) | m.Call(func=m.Attribute(attr=m.Name("size")), args=[])
_SIZE = _LENGTH | m.Call(func=m.Attribute(attr=m.Name("size")), args=[m.Arg()]) | m.Subscript(value=_SHAPE)


def rewrite(context: RewriteContext) -> Edit:
    """The number computed by ``math`` functions."""
    node = context.node
    if not isinstance(node, cst.Call):
        raise Declined("this is not a conversion")
    if not m.matches(node, m.Call(func=m.Attribute(attr=m.Name("item")), args=[])):
        raise Declined("no number is read from an array")
    value = cst.ensure_type(node.func, cst.Attribute).value
    is_int = m.matches(value, _ASTYPE_INT)
    if is_int:
        value = cst.ensure_type(cst.ensure_type(value, cst.Call).func, cst.Attribute).value
    differences: list[Difference] = []
    name = _numpy_name(context, value)
    if name is None:
        raise OtherForm(f"`{context.code(value)}` is not a call of a NumPy function")
    if name in _ROUNDING and not is_int:
        raise Declined(f"`np.{name}` returns a float here, but `math.{name}` returns an int")
    if name not in _ROUNDING and name != "prod":
        raise Declined(f"the result of `np.{name}` is not rounded to an integer")
    return Edit(
        {node: _made(context, value, differences, is_int)}, list(dict.fromkeys(differences)), keeps_operations=True
    )


def _numpy_name(context: RewriteContext, node: cst.CSTNode) -> str | None:
    """The name of the NumPy function that is called with one argument."""
    if not isinstance(node, cst.Call) or only_argument(node) is None:
        return None
    dotted = context.dotted(node.func) or ""
    return dotted.removeprefix("numpy.") if dotted.startswith("numpy.") else None


def _made(
    context: RewriteContext, node: cst.BaseExpression, differences: list[Difference], is_int: bool
) -> cst.BaseExpression:
    """The same expression with ``math``.  Declines if it is not a number."""
    name = _numpy_name(context, node)
    if name is None:
        return _number(context, node)
    inner = cst.ensure_type(node, cst.Call).args[0].value
    if name == "prod":
        if not m.matches(defined(context, inner), _SHAPE) or not _is_of_tensor(context, defined(context, inner)):
            raise Declined(f"`{context.code(inner)}` is not known to be a shape")
        if not is_int and not _has_dimensions(context, defined(context, inner)):
            differences.append(_OF_NOTHING)
        return call(context.imported("math.prod"), copied(inner))
    if name in _NOT_OF_NOTHING:
        differences.append(_DOMAIN)
    elif name not in _ANY_SIZE and name not in _ROUNDING:
        raise Declined(f"`math` has no known equivalent of `np.{name}`")
    return call(context.imported(f"math.{name}"), _made(context, inner, differences, is_int))


def _number(context: RewriteContext, node: cst.BaseExpression) -> cst.BaseExpression:
    """A number that is passed to NumPy: a size, a literal, or arithmetic with them that cannot be negative."""
    if not _is_not_negative(context, node):
        raise Declined(f"`{context.code(node)}` is not known to be a size or a number")
    return copied(node)


def _is_not_negative(context: RewriteContext, node: cst.BaseExpression) -> bool:
    if isinstance(node, cst.BinaryOperation) and isinstance(node.operator, _ARITHMETIC):
        return _is_not_negative(context, node.left) and _is_not_negative(context, node.right)
    made = defined(context, node)
    if isinstance(made, cst.Integer | cst.Float):
        return bool(made.evaluated_value <= _LARGEST)
    return m.matches(made, _SIZE) and _is_of_tensor(context, made)


def _has_dimensions(context: RewriteContext, node: cst.BaseExpression) -> bool:
    """Whether a tensor whose shape an expression reads is known to have a dimension."""
    owner = node.func if isinstance(node, cst.Call) else node
    return isinstance(owner, cst.Attribute) and rank_of(context, owner.value).least > 0


def _is_of_tensor(context: RewriteContext, node: cst.BaseExpression) -> bool:
    """Whether ``x`` of ``x.size(0)``, ``x.shape[0]``, ``x.shape`` or ``len(x)`` is a tensor."""
    if m.matches(node, _LENGTH):
        return context.fact(cst.ensure_type(node, cst.Call).args[0].value).is_tensor
    while isinstance(node, cst.Call | cst.Subscript):
        node = node.func if isinstance(node, cst.Call) else node.value
    return isinstance(node, cst.Attribute) and context.fact(node.value).is_tensor
