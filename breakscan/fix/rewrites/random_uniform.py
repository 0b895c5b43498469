"""``random.random()`` → ``random.uniform(0.0, 1.0)``; ``numpy.random.uniform(a, b)`` → ``random.uniform(a, b)``.

Dynamo draws a new number from ``random.uniform`` and ``random.randrange`` at each call.  ``uniform(0.0, 1.0)`` is
``0.0 + 1.0 * random()``: bit for bit the same number from the same seed.  Python's generator instead of NumPy's is a
different source of numbers with the same distribution.
"""

from __future__ import annotations

import libcst as cst

from breakscan.fix.support.context import RewriteContext
from breakscan.fix.support.difference import Effect, differs
from breakscan.fix.support.edit import Declined, Edit

FROM_NUMPY = differs("the number comes from Python's generator, not from NumPy's", Effect.RANDOM, Effect.VALUES)
_UNIT = frozenset({"numpy.random.rand", "numpy.random.random", "numpy.random.random_sample", "numpy.random.sample"})


def rewrite(context: RewriteContext) -> Edit:
    """The same draw with a function that Dynamo traces."""
    node = context.node
    if not isinstance(node, cst.Call):
        raise Declined("this is not a call")
    name = context.dotted(node.func)
    plain = all(arg.keyword is None and not arg.star for arg in node.args)
    if name == "random.random":
        if not isinstance(node.func, cst.Attribute):
            raise Declined("`random` is the function, not the module")
        function = node.func.with_deep_changes(node.func.attr, value="uniform")
        return Edit({node: _draw(function.deep_clone(), "0.0, 1.0")}, keeps_operations=True)
    if name in _UNIT and not node.args:
        return Edit({node: _draw(context.imported("random.uniform"), "0.0, 1.0")}, [FROM_NUMPY])
    if name == "numpy.random.uniform" and plain and len(node.args) in (0, 2) and _are_numbers(context, node):
        given = ", ".join(context.code(arg.value) for arg in node.args) or "0.0, 1.0"
        return Edit({node: _draw(context.imported("random.uniform"), given)}, [FROM_NUMPY])
    if name == "numpy.random.randint" and plain and len(node.args) in (1, 2) and _are_numbers(context, node):
        given = ", ".join(context.code(arg.value) for arg in node.args)
        return Edit({node: _draw(context.imported("random.randrange"), given)}, [FROM_NUMPY])
    if name is not None and name.startswith("numpy."):
        raise Declined("only a single uniform number can be drawn in the graph: draw before the compiled call")
    raise Declined(
        "Dynamo cannot trace a function with this distribution: draw before the compiled call and pass the result in"
    )


def _are_numbers(context: RewriteContext, node: cst.Call) -> bool:
    """Whether the bounds are known to be Python numbers: with arrays, the result would be an array."""
    return all(context.fact(arg.value).is_number or isinstance(arg.value, cst.BaseNumber) for arg in node.args)


def _draw(function: cst.BaseExpression, arguments: str) -> cst.BaseExpression:
    call = cst.ensure_type(cst.parse_expression(f"_({arguments})"), cst.Call)
    return call.with_changes(func=function)
