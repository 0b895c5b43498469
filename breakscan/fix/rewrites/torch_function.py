"""``math.sqrt(t)`` → ``torch.sqrt(t)``, and likewise for other ``math`` functions that torch has.

The result is a 0-d tensor in the tensor's dtype, while ``math`` computes in float64, and NaN or infinity if ``math``
raises, so it is never the same to the last digit.  As for a number read from a tensor, every use of the result is
checked, and nothing is changed if one takes a Python number.
"""

from __future__ import annotations

import libcst as cst

from breakscan.fix.support.build import call, copied, method, operand
from breakscan.fix.support.context import RewriteContext
from breakscan.fix.support.difference import Difference, Effect, ShowsOnly, assumes, differs
from breakscan.fix.support.edit import Declined, Edit, OtherForm
from breakscan.fix.support.number_uses import DOUBLE, Uses
from breakscan.fix.support.numbers import is_number
from breakscan.fix.support.one_number import must_be_tensor, must_have_no_dimension, without_gradient

_SAME = frozenset(
    {
        *("acos", "acosh", "asin", "asinh", "atan", "atanh", "cos", "cosh", "erf", "erfc", "exp", "exp2", "expm1"),
        *("lgamma", "log", "log10", "log1p", "log2", "sin", "sinh", "sqrt", "tan", "tanh"),
    }
)
_OTHER_NAMES = {"degrees": "rad2deg", "radians": "deg2rad", "fabs": "abs"}
_TESTS = frozenset({"isfinite", "isinf", "isnan"})
_TO_INT = frozenset({"ceil", "floor"})
_TWO = {"fmod": "fmod", "pow": "pow"}
_DOMAIN = differs(
    "a number outside the domain gives NaN or infinity instead of an error", Effect.NO_LONGER_RAISES, Effect.VALUES
)


def rewrite(context: RewriteContext) -> Edit:
    """The torch function on the 0-d tensor."""
    node = context.node
    name = context.dotted(node.func) if isinstance(node, cst.Call) else None
    if not isinstance(node, cst.Call) or name is None or not name.startswith("math."):
        raise OtherForm("this is not a call of a `math` function")
    if not node.args or any(arg.keyword is not None or arg.star for arg in node.args):
        raise Declined("the arguments are not passed individually")
    tensor = node.args[0].value
    must_be_tensor(context, tensor)
    made, dtype, differences = _made(context, node, name.rpartition(".")[2], tensor)
    uses = Uses(context, tensor, dtype, context.code(node))
    uses.note(*differences)
    uses.follow(node)
    must_have_no_dimension(context, tensor)
    if isinstance(
        context.parent(node), cst.BinaryOperation | cst.UnaryOperation | cst.Comparison | cst.ComparisonTarget
    ):
        made = operand(made)
    return Edit({node: made}, list(uses.differences))


def _made(
    context: RewriteContext, node: cst.Call, name: str, tensor: cst.BaseExpression
) -> tuple[cst.BaseExpression, str, list[Difference]]:
    """The new expression, its dtype, and the differences."""
    given = without_gradient(context, tensor)
    differences = (
        []
        if context.fact(tensor).certain
        else [assumes(f"`{context.code(tensor)}` is assumed to be a tensor", only=ShowsOnly.NO_TENSOR)]
    )
    if name == "pow" and len(node.args) == 2 and is_number(context, node.args[1].value):
        if context.fact(tensor).dtype != "float":
            raise Declined("a power of integers is an integer, but `math.pow` returns a float")
        exponent = operand(node.args[1].value)
        return cst.BinaryOperation(operand(given), cst.Power(), exponent), "float", [*differences, DOUBLE]
    if len(node.args) != 1:
        raise Declined(f"`math.{name}` is called with several arguments")
    if name in _TESTS:
        return call(context.imported(f"torch.{name}"), copied(tensor)), "bool", differences
    if name in _TO_INT:
        if context.fact(tensor).dtype != "float":
            raise Declined(f"`{context.code(tensor)}` may already be an integer")
        said = f"`math.{name}` of NaN or infinity no longer raises"
        differences.append(differs(said, Effect.NO_LONGER_RAISES, Effect.VALUES))
        return method(call(context.imported(f"torch.{name}"), copied(tensor)), "long"), "int", differences
    if name not in _SAME and name not in _OTHER_NAMES:
        raise Declined(f"torch has no equivalent of `math.{name}`")
    function = context.imported(f"torch.{_OTHER_NAMES.get(name, name)}")
    return call(function, given), "float", [*differences, DOUBLE, _DOMAIN]
