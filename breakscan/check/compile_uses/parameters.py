"""The uses of the parameters of compiled functions, and floats that outlive the call."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum

from breakscan.check.compile_uses.uses import BoundName, CompiledNames
from breakscan.check.project.index import FunctionInfo, ModuleIndex
from breakscan.source.walking import FunctionNode, is_name, own_nodes, reads, walk

# Uses of parameters in compiled functions: none, computing with them, or deciding the structure of the graph.


class Treatment(Enum):
    """The use of a parameter, as far as it decides how often Dynamo compiles.  An operand of events."""

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
    forward = names.project.method(target.owner, "forward") if target.owner is not None else None
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
    """The use of a parameter that holds a number."""
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
    """True if an expression is a name, or Python arithmetic on it and constants."""
    if isinstance(node, ast.BinOp):
        sides = [is_number_of(s, name) for s in (node.left, node.right) if not isinstance(s, ast.Constant)]
        return bool(sides) and all(sides)
    return isinstance(node, ast.Name) and node.id == name


def _is_list(node: ast.expr, names: CompiledNames, function: FunctionNode, target: BoundName | None) -> bool:
    """True if a value is a list, a dict or an ``nn.ModuleList`` made in the file."""
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
            is_update = isinstance(node, ast.Assign) and isinstance(node.value, ast.BinOp | ast.Call)
            if not isinstance(node, ast.Assign | ast.AugAssign) or not (is_update or isinstance(node, ast.AugAssign)):
                continue
            target = node.targets[0] if isinstance(node, ast.Assign) else node.target
            readers = _readers(info, target, declared)
            if not readers:
                continue
            update = _update(node, target, info)
            if update is not None and update.is_float and any(_computes_with(r, target) for r in readers):
                yield info, node, target


@dataclass(frozen=True, slots=True)
class _Arithmetic:
    """Python arithmetic on numbers: whether it gives a float, and whether it reads the place that it is stored in."""

    is_float: bool
    reads_place: bool = False


def _readers(info: FunctionInfo, target: ast.expr, declared: frozenset[str]) -> Sequence[FunctionInfo]:
    """The functions that read what is assigned: the methods of the class, or for a global the function itself."""
    if isinstance(target, ast.Name):
        return [info] if target.id in declared else []
    if info.owner is None or info.first_parameter is None or not isinstance(target, ast.Attribute):
        return []
    return list(info.owner.methods.values()) if is_name(target.value, info.first_parameter) else []


def _update(node: ast.Assign | ast.AugAssign, target: ast.expr, info: FunctionInfo) -> _Arithmetic | None:
    """The new value, if it is computed from the old one and other numbers."""
    place = ast.unparse(target)
    start = _start_of(info, target)
    value = _arithmetic(node.value, place, info)
    if start is None or value is None:
        return None
    if isinstance(node, ast.Assign) and not value.reads_place:
        return None
    is_float = start.is_float or value.is_float or (isinstance(node, ast.AugAssign) and isinstance(node.op, ast.Div))
    return _Arithmetic(is_float)


def _arithmetic(node: ast.expr, place: str, info: FunctionInfo) -> _Arithmetic | None:
    """The result of an expression that is Python arithmetic on numbers alone."""
    if isinstance(node, ast.Constant):
        return _Arithmetic(type(node.value) is float) if type(node.value) in (int, float) else None
    if isinstance(node, ast.Name | ast.Attribute):
        start = _start_of(info, node)
        return start and _Arithmetic(start.is_float, ast.unparse(node) == place)
    if isinstance(node, ast.UnaryOp):
        operands = [node.operand]
    elif isinstance(node, ast.BinOp):
        operands = [node.left, node.right]
    elif isinstance(node, ast.Call) and info.index.dotted(node.func) in _OF_NUMBERS and not node.keywords:
        operands = node.args
    else:
        return None
    parts = [_arithmetic(operand, place, info) for operand in operands]
    known = [part for part in parts if part is not None]
    if len(known) < len(parts):
        return None
    divides = isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div)
    return _Arithmetic(divides or any(p.is_float for p in known), any(p.reads_place for p in known))


def _start_of(info: FunctionInfo, place: ast.expr) -> _Arithmetic | None:
    """The number that an attribute or a global holds before the first call, or None if it may hold anything else."""
    starts: list[_Arithmetic | None] = []
    if isinstance(place, ast.Name):
        starts = [_number(value, None) for value in _assigned(info.index.tree.body, place.id)]
    elif isinstance(place, ast.Attribute) and info.owner is not None:
        made = info.owner.methods.get("__init__")
        starts = [_number(value, None) for value in _assigned(info.owner.node.body, place.attr)]
        if made is not None:
            starts += [_number(value, made) for value in _assigned(made.own_nodes, ast.unparse(place))]
    known = [start for start in starts if start is not None]
    if not known or len(known) < len(starts):
        return None
    return _Arithmetic(any(start.is_float for start in known))


def _assigned(nodes: Iterable[ast.AST], place: str) -> Iterator[ast.expr | None]:
    for node in nodes:
        if isinstance(node, ast.Assign | ast.AnnAssign | ast.AugAssign) and _sets(node, place):
            yield node.value


def _number(node: ast.expr | None, made: FunctionInfo | None) -> _Arithmetic | None:
    """A number as it is written, or a parameter of ``__init__`` that is annotated as one or has one as its default."""
    if isinstance(node, ast.Constant) and type(node.value) in (int, float):
        return _Arithmetic(type(node.value) is float)
    if made is None or not isinstance(node, ast.Name):
        return None
    given = made.node.args
    for parameter in (*given.posonlyargs, *given.args, *given.kwonlyargs):
        if parameter.arg == node.id and isinstance(parameter.annotation, ast.Name):
            name = parameter.annotation.id
            return _Arithmetic(name == "float") if name in ("float", "int") else None
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


def returns_number_of(function: FunctionNode, parameter: str) -> bool:
    """True if a function returns a number that it computes from a parameter, next to what it computes with it."""
    nodes = own_nodes(function)
    results = [node.value for node in nodes if isinstance(node, ast.Return) and node.value is not None]
    parts = [part for result in results for part in _parts(result)]
    numbers = [part for part in parts if isinstance(part, ast.BinOp) and is_number_of(part, parameter)]
    inside = {node for number in numbers for node in walk(number)}
    others = [node for node in nodes if isinstance(node, ast.BinOp) and node not in inside]
    return bool(numbers) and any(
        is_number_of(side, parameter) and not is_number_of(node, parameter)
        for node in others
        for side in (node.left, node.right)
    )


def _parts(result: ast.expr) -> list[ast.expr]:
    if isinstance(result, ast.Tuple | ast.List):
        return result.elts
    return result.values if isinstance(result, ast.Dict) else [result]
