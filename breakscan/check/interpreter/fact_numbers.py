"""Whether an expression is surely one Python number, and no list of them."""

from __future__ import annotations

import ast

from breakscan.check.interpreter.fact_ranks import Known
from breakscan.check.interpreter.values import Constant, Namespace
from breakscan.check.project.index import FunctionInfo
from breakscan.model.observations import FunctionSeen

_NUMBERS = ("bool", "float", "int")
_CONVERSIONS = (*_NUMBERS, "len")


def is_one_number(node: ast.expr, function: FunctionInfo, known: Known, seen: FunctionSeen | None) -> bool:
    """Whether it is a number that is written out, a conversion to one, or a parameter that is annotated as one, or that
    held nothing else in what was ``seen``. An attribute, and a parameter with a number as its default, may hold a list
    as well.
    """
    if isinstance(node, ast.UnaryOp) and not isinstance(node.op, ast.Not):
        node = node.operand
    found = known(node)
    value = found[0] if found is not None else None
    if isinstance(value, Constant) and isinstance(value.literal, int | float) and not value.by_default:
        return True
    if isinstance(node, ast.Call):
        callee = known(node.func)
        return callee is not None and isinstance(callee[0], Namespace) and callee[0].name in _CONVERSIONS
    if not isinstance(node, ast.Name) or (parameter := _parameter(node.id, function)) is None:
        return False
    if parameter.annotation is not None and function.index.dotted(parameter.annotation) in _NUMBERS:
        return True
    held = seen.names.get(node.id) if seen is not None else None
    return held is not None and set(held.types) <= set(_NUMBERS)


def _parameter(name: str, function: FunctionInfo) -> ast.arg | None:
    """The parameter of a name that nothing else is ever assigned to."""
    given = function.node.args
    found = next((one for one in (*given.posonlyargs, *given.args, *given.kwonlyargs) if one.arg == name), None)
    stored = (node.id for node in function.own_nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store))
    return found if name not in stored else None
