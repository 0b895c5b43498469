"""The values that decide whether a result requires a gradient."""

from __future__ import annotations

from collections.abc import Collection, Iterator

import libcst as cst

from breakscan.fix.support import matchers as m
from breakscan.fix.support.context import RewriteContext
from breakscan.fix.support.gradients import assigned_values, values_in
from breakscan.fix.support.names import read
from breakscan.fix.support.operators import asks_for_gradient, operator_of
from breakscan.fix.support.walking import children, findall
from breakscan.model.facts import DtypeOf
from breakscan.rulebook.torch_facts.not_measured import ATTRIBUTES_WITHOUT_GRADIENT
from breakscan.rulebook.torch_facts.operators import Gradient


def gradient_roots(
    context: RewriteContext, sources: Collection[cst.BaseExpression], names: Collection[str], site: cst.CSTNode
) -> frozenset[str]:
    """The parameters, attributes and unknown values that the gradient of a value may flow to.

    The value is computed from ``sources``, which are expressions of the file, and from ``names``.
    """
    found: set[str] = set()
    seen: set[str] = set()
    for source in sources:
        _gather(context, source, site, found, seen)
    for name in set(names).difference(*map(read, sources)):
        _of_name(context, name, site, found, seen)
    return frozenset(found)


def _gather(context: RewriteContext, node: cst.CSTNode, site: cst.CSTNode, found: set[str], seen: set[str]) -> None:
    if isinstance(node, cst.Call) and asks_for_gradient(node):
        found.add(context.code(node))
        return
    if isinstance(node, cst.BaseExpression) and _has_none(context, node):
        return
    if isinstance(node, cst.Name):
        _of_name(context, node.value, site, found, seen)
    elif isinstance(node, cst.Attribute):
        if node.attr.value not in ATTRIBUTES_WITHOUT_GRADIENT:
            if context.fact(node.value).kind == "tensor":
                _gather(context, node.value, site, found, seen)
            else:
                found.add(context.code(node))
    elif isinstance(node, cst.Call):
        if isinstance(node.func, cst.Attribute) and context.method(node) is not None:
            _gather(context, node.func.value, site, found, seen)
        elif not (context.dotted(node.func) or "").startswith("torch."):
            found.add(context.code(node.func))
        for arg in node.args:
            _gather(context, arg.value, site, found, seen)
    else:
        for child in children(node):
            _gather(context, child, site, found, seen)


def _of_name(context: RewriteContext, name: str, site: cst.CSTNode, found: set[str], seen: set[str]) -> None:
    """Continues with the values assigned to a name: those before the site, unless only the site assigns it."""
    if name in seen:
        return
    seen.add(name)
    function = context.function
    every = assigned_values(function, name)
    values = [one for one in every if not any(above is site for above in context.around(one))] or every
    parameters = findall(function.params, m.Param(name=m.Name(name)))
    if parameters or not values:
        found.add(name)
    for value in values:
        _gather(context, value, site, found, seen)


def names_with_gradient(
    context: RewriteContext, sources: Collection[cst.BaseExpression], names: Collection[str], statement: cst.CSTNode
) -> frozenset[str]:
    """The names that the gradient of a value certainly flows to.

    Includes those that a statement computes others from if no other code assigns them.  The value is computed from
    ``sources``, which are expressions of the file, and from ``names``.
    """
    before = context.names_before(statement) if isinstance(statement, cst.BaseCompoundStatement) else {}
    found = [name for source in sources for name in _certain(context, source)]
    found += sorted(set(names).difference(*map(read, sources)))
    for name in found:
        for value in values_in(statement, name) if name not in before else ():
            found += [one for one in _certain(context, value) if one not in found]
    return frozenset(found)


def _certain(context: RewriteContext, node: cst.BaseExpression) -> Iterator[str]:
    if _has_none(context, node):
        return
    if isinstance(node, cst.Name):
        yield node.value
    elif isinstance(node, cst.UnaryOperation):
        yield from _certain(context, node.expression)
    elif isinstance(node, cst.BinaryOperation):
        yield from _certain(context, node.left)
        yield from _certain(context, node.right)
    elif isinstance(node, cst.Subscript):
        yield from _certain(context, node.value)
    elif isinstance(node, cst.Attribute):
        if node.attr.value not in ATTRIBUTES_WITHOUT_GRADIENT and context.fact(node.value).kind == "tensor":
            yield from _certain(context, node.value)
    elif isinstance(node, cst.Call) and operator_of(context, node) is not None:
        if isinstance(node.func, cst.Attribute) and context.method(node) is not None:
            yield from _certain(context, node.func.value)
        for arg in node.args:
            yield from _certain(context, arg.value)


def _has_none(context: RewriteContext, node: cst.BaseExpression) -> bool:
    """Whether the value of an expression is known not to require a gradient."""
    fact = context.fact(node)
    if fact.kind in ("constant", "number", "shape", "none", "namespace", "drawn") or fact.is_number:
        return True
    if fact.kind == "tensor" and fact.dtype in ("int", "bool"):
        return True
    if fact.tensor is not None and isinstance(fact.tensor.dtype, DtypeOf) and fact.tensor.dtype.number:
        return True
    known = operator_of(context, node) if isinstance(node, cst.Call) else None
    return known is not None and known.gradient is Gradient.NONE
