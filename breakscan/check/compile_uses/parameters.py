"""The uses of the parameters of compiled functions, and floats that outlive the call."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence
from enum import Enum

from breakscan.check.compile_uses.uses import BoundName, Survey
from breakscan.check.project.index import FunctionInfo, ModuleIndex
from breakscan.source.walking import FunctionNode, is_name, own_nodes, reads, walk


class Treatment(Enum):
    """The use of a parameter, as far as it decides how often Dynamo compiles.  An operand of events."""

    UNUSED = "parameter:unused"
    COMPUTED = "parameter:computed"
    """Dynamic after one change."""
    UNROLLED = "parameter:unrolled"
    """Compiled for each value: it determines the shape of the graph."""


_LISTS = frozenset({"list", "dict", "torch.nn.ModuleList", "torch.nn.ModuleDict"})


def function_of(target: BoundName | None, survey: Survey) -> tuple[FunctionNode, bool] | None:
    """The function that a call of what is compiled runs, and whether its first parameter is the object."""
    if target is None:
        return None
    if target.function is not None:
        return target.function, target.bound
    forward = survey.project.method(target.owner, "forward") if target.owner is not None else None
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


def treatment(function: FunctionNode, parameter: str, survey: Survey, target: BoundName | None) -> Treatment:
    """The use of a parameter that holds a number."""
    used = False
    for node in own_nodes(function):
        if isinstance(node, ast.Name) and node.id == parameter and isinstance(node.ctx, ast.Load):
            used = True
        elif _unrolls(node, parameter, survey, function, target):
            return Treatment.UNROLLED
    inner = [n for n in own_nodes(function) if isinstance(n, ast.FunctionDef | ast.Lambda)]
    used = used or any(reads(n, parameter) for n in inner)
    return Treatment.COMPUTED if used else Treatment.UNUSED


def _unrolls(node: ast.AST, name: str, survey: Survey, function: FunctionNode, target: BoundName | None) -> bool:
    if isinstance(node, ast.Call):
        return is_name(node.func, "range") and any(is_number_of(argument, name) for argument in node.args)
    if isinstance(node, ast.Subscript) and is_number_of(node.slice, name):
        return _is_list(node.value, survey, function, target)
    return False


def is_number_of(node: ast.expr, name: str) -> bool:
    """True if an expression is a name, or Python arithmetic on it and constants."""
    if isinstance(node, ast.BinOp):
        sides = [is_number_of(s, name) for s in (node.left, node.right) if not isinstance(s, ast.Constant)]
        return bool(sides) and all(sides)
    return isinstance(node, ast.Name) and node.id == name


def _is_list(node: ast.expr, survey: Survey, function: FunctionNode, target: BoundName | None) -> bool:
    """True if a value is a list, a dict or an ``nn.ModuleList`` made in the file."""
    values: list[ast.expr | None] = []
    if isinstance(node, ast.Name):
        scope = survey.scopes.of_function.get(function)
        bindings = survey.bindings_of(node.id, scope or survey.scopes.top)
        values = [b.value for b in bindings]
    elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and target is not None and target.owner:
        values = [b.value for b in survey.attribute_bindings(target.owner, node.attr)]
    return bool(values) and all(v is not None and _makes_list(v, survey) for v in values)


def _makes_list(value: ast.expr, survey: Survey) -> bool:
    if isinstance(value, ast.Call):
        return survey.index.dotted(value.func) in _LISTS
    return isinstance(value, ast.List | ast.ListComp | ast.Dict | ast.DictComp)


def reads_only_constant_keys(function: FunctionNode, parameter: str) -> bool:
    """True if a function only reads constant keys of a dict."""
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


_OF_NUMBERS = frozenset({"min", "max", "abs", "float"})
_Number = type[int] | type[float]


def float_updates(
    index: ModuleIndex, compiled: Iterable[FunctionInfo]
) -> Iterator[tuple[FunctionInfo, ast.stmt, ast.expr]]:
    """``self.scale *= 0.5`` in compiled code, on an attribute or a global that starts as a number and that other
    arithmetic reads: the function, the statement, and what is assigned."""
    for info in compiled:
        if info.index is not index or info.name == "__init__":
            continue
        declared = frozenset(name for n in info.own_nodes if isinstance(n, ast.Global) for name in n.names)
        for node in info.own_nodes:
            if isinstance(node, ast.Assign | ast.AugAssign):
                target = node.targets[0] if isinstance(node, ast.Assign) else node.target
                readers = _readers(info, target, declared)
                if readers and _makes_float(node, target, info) and any(_computes_with(r, target) for r in readers):
                    yield info, node, target


def _readers(info: FunctionInfo, target: ast.expr, declared: frozenset[str]) -> Sequence[FunctionInfo]:
    """The functions that read what is assigned: the methods of the class, or for a global the function itself."""
    if isinstance(target, ast.Name):
        return [info] if target.id in declared else []
    if info.owner is None or info.first_parameter is None or not isinstance(target, ast.Attribute):
        return []
    return list(info.owner.methods.values()) if is_name(target.value, info.first_parameter) else []


def _makes_float(node: ast.Assign | ast.AugAssign, target: ast.expr, info: FunctionInfo) -> bool:
    """True if the new value is a float that is computed from the old one and other numbers."""
    kinds = _start_of(info, target), _kind(node.value, info)
    if isinstance(node, ast.AugAssign):
        return None not in kinds and (float in kinds or isinstance(node.op, ast.Div))
    reads_place = isinstance(node.value, ast.BinOp | ast.Call) and ast.unparse(target) in map(
        ast.unparse, (part for part in walk(node.value) if isinstance(part, ast.Name | ast.Attribute))
    )
    return reads_place and None not in kinds and float in kinds


def _kind(node: ast.expr, info: FunctionInfo) -> _Number | None:
    """The type of an expression that is Python arithmetic on numbers alone."""
    match node:
        case ast.Constant():
            return _number(node, None)
        case ast.Name() | ast.Attribute():
            return _start_of(info, node)
        case ast.UnaryOp():
            operands = [node.operand]
        case ast.BinOp():
            operands = [node.left, node.right]
        case ast.Call() if info.index.dotted(node.func) in _OF_NUMBERS and not node.keywords:
            operands = node.args
        case _:
            return None
    divides = isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div)
    return _joined({_kind(operand, info) for operand in operands} | ({float} if divides else set()))


def _joined(kinds: set[_Number | None]) -> _Number | None:
    return None if None in kinds or not kinds else float if float in kinds else int


def _start_of(info: FunctionInfo, place: ast.expr) -> _Number | None:
    """The type of the number that an attribute or a global holds before the first call; None if it may hold another."""
    starts: set[_Number | None] = set()
    if isinstance(place, ast.Name):
        starts = {_number(value, None) for value in _assigned(info.index.tree.body, place.id)}
    elif isinstance(place, ast.Attribute) and info.owner is not None:
        made = info.owner.methods.get("__init__")
        starts = {_number(value, None) for value in _assigned(info.owner.node.body, place.attr)}
        if made is not None:
            starts |= {_number(value, made) for value in _assigned(made.own_nodes, ast.unparse(place))}
    return _joined(starts)


def _assigned(nodes: Iterable[ast.AST], place: str) -> Iterator[ast.expr | None]:
    for node in nodes:
        if isinstance(node, ast.Assign | ast.AnnAssign | ast.AugAssign) and _sets(node, place):
            yield node.value


def _number(node: ast.expr | None, made: FunctionInfo | None) -> _Number | None:
    """The type of a number as it is written, or of a parameter of ``__init__`` by its annotation or default."""
    if isinstance(node, ast.Constant) and type(node.value) in (int, float):
        return float if type(node.value) is float else int
    if made is None or not isinstance(node, ast.Name):
        return None
    given = made.node.args
    for parameter in (*given.posonlyargs, *given.args, *given.kwonlyargs):
        if parameter.arg == node.id and isinstance(parameter.annotation, ast.Name):
            return {"float": float, "int": int}.get(parameter.annotation.id)
    return _number(made.defaults.get(node.id), None)


def _computes_with(reader: FunctionInfo, place: ast.expr) -> bool:
    """True if arithmetic reads the place, other than for its own updates.  A number that nothing is computed with stays
    constant in the graph, so that each value compiles anew."""
    text = ast.unparse(place)
    own = {part for node in reader.own_nodes if _sets(node, text) for part in walk(node)}
    for node in reader.own_nodes:
        if isinstance(node, ast.BinOp) and node not in own:
            if any(ast.unparse(side) == text for side in (node.left, node.right)):
                return True
        elif isinstance(node, ast.AugAssign) and node not in own and ast.unparse(node.value) == text:
            return True
    return False


def _sets(node: ast.AST, place: str) -> bool:
    if isinstance(node, ast.Assign):
        return place in map(ast.unparse, node.targets)
    return isinstance(node, ast.AnnAssign | ast.AugAssign) and ast.unparse(node.target) == place
