"""What a compiled function does with a parameter: nothing, compute with it, or determine the graph's shape by it."""

from __future__ import annotations

import ast
from enum import Enum

from breakscan.check.compile_uses.compiled import BoundName
from breakscan.check.compile_uses.names import CompiledNames
from breakscan.source.walking import FunctionNode, own_nodes, reads


class Treatment(Enum):
    """What a function does with a parameter, as far as it decides how often Dynamo compiles.  An operand of events."""

    UNUSED = "parameter:unused"
    COMPUTED = "parameter:computed"
    """Dynamic after one change."""
    UNROLLED = "parameter:unrolled"
    """Compiled for each value: it determines the shape of the graph."""


_LISTS = frozenset({"list", "dict", "torch.nn.ModuleList", "torch.nn.ModuleDict"})
# Functions of torch whose graph holds the number itself: the index and the name of the argument.
_EXACT = {
    "torch.nn.functional.dropout": (1, "p"),
    "torch.nn.functional.one_hot": (1, "num_classes"),
    "torch.nn.functional.layer_norm": (4, "eps"),
}


def function_of(target: BoundName | None, names: CompiledNames) -> tuple[FunctionNode, bool] | None:
    """The function that a call of what is compiled runs, and whether its first parameter is the object."""
    if target is None:
        return None
    if target.function is not None:
        return target.function, target.bound
    forward = names.method(target.owner, "forward") if target.owner is not None else None
    return (forward.node, True) if forward is not None else None


def parameters(function: FunctionNode, bound: bool) -> list[str]:
    """The names of the parameters that can be given by position."""
    given = [a.arg for a in (*function.args.posonlyargs, *function.args.args)]
    return given[1:] if bound else given


def parameter_of(call: ast.Call, argument: ast.expr, function: FunctionNode, bound: bool) -> str | None:
    """The parameter that receives an argument of a call, if it is known."""
    names = parameters(function, bound)
    for i, given in enumerate(call.args):
        if given is argument:
            if isinstance(given, ast.Starred) or i >= len(names):
                return function.args.vararg.arg if function.args.vararg else None
            return names[i]
        if isinstance(given, ast.Starred):
            return None
    for keyword in call.keywords:
        if keyword.value is argument:
            known = [*names, *(a.arg for a in function.args.kwonlyargs)]
            return keyword.arg if keyword.arg in known else None
    return None


def treatment(function: FunctionNode, parameter: str, names: CompiledNames, target: BoundName | None) -> Treatment:
    """How a function uses a parameter that holds a number."""
    used = False
    for node in own_nodes(function):
        if isinstance(node, ast.Name) and node.id == parameter and isinstance(node.ctx, ast.Load):
            used = True
        elif _unrolls(node, parameter, names, function, target):
            return Treatment.UNROLLED
    inner = [n for n in own_nodes(function) if isinstance(n, ast.FunctionDef | ast.Lambda)]
    used = used or any(reads(n, parameter) for n in inner)
    return Treatment.COMPUTED if used else Treatment.UNUSED


def _unrolls(node: ast.AST, name: str, names: CompiledNames, function: FunctionNode, target: BoundName | None) -> bool:
    if isinstance(node, ast.Call):
        index = target.owner.index if target is not None and target.owner is not None else names.index
        dotted = index.dotted(node.func)
        if dotted == "range":
            return any(is_number_of(a, name) for a in node.args)
        if dotted in _EXACT:
            position, keyword = _EXACT[dotted]
            given = [node.args[position]] if position < len(node.args) else []
            given += [k.value for k in node.keywords if k.arg == keyword]
            return any(is_number_of(a, name) for a in given)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
        sides = node.left, node.right
        return any(isinstance(s, ast.List) for s in sides) and any(is_number_of(s, name) for s in sides)
    if isinstance(node, ast.Subscript) and is_number_of(node.slice, name):
        return _is_list(node.value, names, function, target)
    return False


def is_number_of(node: ast.expr, name: str) -> bool:
    """Whether an expression is a name, or Python arithmetic on it and constants."""
    if isinstance(node, ast.BinOp):
        sides = [is_number_of(s, name) for s in (node.left, node.right) if not isinstance(s, ast.Constant)]
        return bool(sides) and all(sides)
    return isinstance(node, ast.Name) and node.id == name


def _is_list(node: ast.expr, names: CompiledNames, function: FunctionNode, target: BoundName | None) -> bool:
    """Whether a value is a list, a dict or an ``nn.ModuleList`` made in the file."""
    values: list[ast.expr | None] = []
    if isinstance(node, ast.Name):
        scope = names.scopes.of_function.get(function)
        bindings = names.bindings_of(node.id, scope or names.scopes.top)
        values = [b.value for b in bindings]
    elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and target is not None and target.owner:
        values = [b.value for b in names.attribute_bindings(target.owner, node.attr)]
    return bool(values) and all(v is not None and _makes_list(v, names) for v in values)


def _makes_list(value: ast.expr, names: CompiledNames) -> bool:
    if isinstance(value, ast.Call):
        return names.index.dotted(value.func) in _LISTS
    return isinstance(value, ast.List | ast.ListComp | ast.Dict | ast.DictComp)


def reads_only_constant_keys(function: FunctionNode, parameter: str) -> bool:
    """Whether a function only reads constant keys of a dict."""
    keyed = [
        node.value
        for node in own_nodes(function)
        if isinstance(node, ast.Subscript)
        and isinstance(node.ctx, ast.Load)
        and isinstance(node.slice, ast.Constant)
        and isinstance(node.value, ast.Name)
        and node.value.id == parameter
    ]
    loads = [n for n in own_nodes(function) if isinstance(n, ast.Name) and n.id == parameter]
    return len(keyed) == len(loads)
