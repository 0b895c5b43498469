"""The uses of a value that the compiler does not know: those that need it in Python, and tests that leave a loop."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping

from breakscan.model.findings import Site
from breakscan.model.torch_versions import PINNED
from breakscan.rulebook.torch_facts.table import KEEPS_DIMENSIONS, load_api
from breakscan.source.module import SourceModule
from breakscan.source.spans import nodes_around, span
from breakscan.source.walking import Definition

_PASSES_ON = {"int", "float", "max", "min", "abs", "round", "zip", "enumerate", "list", "tuple", "reversed"}
"""Builtins that take an unknown number, and whose result is unknown as well."""
_PARTS = {"tolist", "unbind", "split", "chunk", "tensor_split", "zip", "enumerate", "list", "tuple", "reversed"}
"""Functions that take a tensor apart: the number of parts is its size."""
_OWN = ("self", "cls", "super")


def is_needed_in_python(module: SourceModule, site: Site, *, returns: bool, sized: bool) -> bool:
    """Return whether Python itself needs the value that the code at a site reads from a tensor, or what is computed
    from it: for a test, a number of rounds, a text, the choice of an object, or in code that is not seen.

    ``returns`` says that the function may return it: nothing that is compiled as well calls the function.  ``sized``
    says that it is a tensor, of which only the size is not known.
    """
    around = [node for _, node in nodes_around(site, module)]
    whole = site.line, site.column, site.end_line, site.end_column
    at_site = [one for one in around if isinstance(one, ast.expr) and span(module, one) == whole]
    function: ast.AST = next((one for one in reversed(around) if isinstance(one, Definition)), module.tree)
    if not at_site:
        return True
    parents = {child: parent for parent in ast.walk(function) for child in ast.iter_child_nodes(parent)}
    seen: set[str] = set()
    values: list[ast.expr] = at_site[:1]
    while values:
        names: set[str] = set()
        for value in values:
            holders = _holders(value, parents, returns=returns, sized=sized)
            if holders is None:
                return True
            names |= holders
        loads = (one for one in ast.walk(function) if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Load))
        values = [one for one in loads if one.id in names - seen]
        seen |= names
    return False


def leaves_loop(module: SourceModule, site: Site) -> bool:
    """Return whether the code at a site is part of a test on which a loop is left, and nothing else depends."""
    around = [node for _, node in nodes_around(site, module)]
    begins = next((i for i in reversed(range(len(around))) if isinstance(around[i], Definition)), -1) + 1
    loops = [i for i, node in enumerate(around) if i >= begins and isinstance(node, ast.For | ast.While)]
    test = next((node for node in reversed(around) if isinstance(node, ast.stmt)), None)
    return (
        bool(loops)
        and isinstance(test, ast.If)
        and test.test in around
        and not test.orelse
        and all(isinstance(statement, ast.Break | ast.Return) for statement in test.body)
    )


def _holders(value: ast.expr, parents: Mapping[ast.AST, ast.AST], *, returns: bool, sized: bool) -> set[str] | None:
    """The names that hold it from then on; None where Python needs it."""
    child: ast.AST = value
    is_tensor = sized
    while (parent := parents.get(child)) is not None:
        if _asks(parent, child):
            return None
        match parent:
            case ast.comprehension() | ast.For() | ast.AsyncFor() if child is parent.iter:
                return None if is_tensor else set(_names(parent.target))
            case ast.Attribute():
                if is_tensor and parent.attr in _PARTS:
                    return None
                gives_number = _gives_number(parent.attr)
                is_tensor = is_tensor and not gives_number
                if not is_tensor and not gives_number:
                    return set()
            case ast.Call() if child is not parent.func:
                name = parent.func.id if isinstance(parent.func, ast.Name) else None
                if _root(parent.func) in _OWN or (name is not None and name not in _PASSES_ON):
                    return None
                called = parent.func.attr if isinstance(parent.func, ast.Attribute) else name or ""
                if is_tensor and called in _PARTS:
                    return None
                if name is None and (not is_tensor or _is_whole(called, parent, len(parent.args))):
                    return set()
            case ast.Call() if is_tensor and _is_whole(getattr(child, "attr", ""), parent, 1 + len(parent.args)):
                return set()
            case ast.Subscript() if child is parent.slice and not is_tensor:
                return None if _root(parent.value) in _OWN or not isinstance(parent.value, ast.Name) else set()
            case ast.Slice():
                return set()
            case ast.stmt():
                return _of_statement(parent, child, returns=returns, is_tensor=is_tensor)
        child = parent
    return set()


def _gives_number(attribute: str) -> bool:
    """Return whether the attribute or method of a tensor gives numbers or flags, and no tensor: it does so in all
    versions of torch alike."""
    api = load_api(PINNED)
    return (api.attributes.get(attribute) or api.methods.get(attribute)) in ("size", "python")


def _is_whole(name: str, call: ast.Call, tensors: int) -> bool:
    """Return whether the result of the call has one element, whatever the sizes of that many tensors are."""
    return load_api(PINNED).is_whole(name, tensors) and not KEEPS_DIMENSIONS & {one.arg for one in call.keywords}


def _asks(parent: ast.AST, child: ast.AST) -> bool:
    """Return whether Python asks for the value of the child there."""
    match parent:
        case ast.If() | ast.While() | ast.IfExp() | ast.Assert():
            return child is parent.test
        case ast.comprehension():
            return child in parent.ifs
        case ast.UnaryOp():
            return isinstance(parent.op, ast.Not)
        case ast.Dict():
            return child in parent.keys
        case ast.BoolOp() | ast.JoinedStr() | ast.FormattedValue() | ast.Raise() | ast.Match():
            return True
    return False


def _of_statement(statement: ast.stmt, child: ast.AST, *, returns: bool, is_tensor: bool) -> set[str] | None:
    match statement:
        case ast.Return():
            return set() if returns else None
        case ast.Assign() | ast.AnnAssign() | ast.AugAssign() if child is statement.value:
            targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
            parts = [one for target in targets for one in ast.walk(target)]
            if any(isinstance(one, ast.Attribute) or (is_tensor and isinstance(one, ast.Tuple)) for one in parts):
                return None
            return {name for target in targets for name in _names(target)}
    return set()


def _names(target: ast.AST) -> Iterator[str]:
    return (one.id for one in ast.walk(target) if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store))


def _root(node: ast.AST) -> str | None:
    while isinstance(node, ast.Attribute | ast.Subscript | ast.Call):
        node = node.func if isinstance(node, ast.Call) else node.value
    return node.id if isinstance(node, ast.Name) else None
