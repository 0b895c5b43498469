"""Walks an ast: all nodes, those of one function, the blocks of a statement, the names that it binds or reads."""

from __future__ import annotations

import ast
from collections.abc import Iterator

FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
Loop = ast.For | ast.AsyncFor | ast.While


def walk(node: ast.AST) -> Iterator[ast.AST]:
    """As :func:`ast.walk` without operators and contexts, in another order and five times as fast."""
    stack = [node]
    while stack:
        current = stack.pop()
        yield current
        if current.__class__ not in _LEAVES:
            _push_children(stack, current)


def own_nodes(node: FunctionNode) -> list[ast.AST]:
    """All nodes of a function's body, without the bodies of functions and classes in it."""
    stack: list[ast.AST] = list(node.body) if isinstance(node.body, list) else [node.body]
    found = []
    while stack:
        current = stack.pop()
        found.append(current)
        if current.__class__ not in _CLOSED:
            _push_children(stack, current)
    return found


def blocks(node: ast.stmt) -> list[list[ast.stmt]]:
    """The statement lists inside an ``if``, ``try``, ``with`` or loop."""
    found = [
        getattr(node, name) for name in ("body", "orelse", "finalbody") if isinstance(getattr(node, name, None), list)
    ]
    found.extend(handler.body for handler in getattr(node, "handlers", []))
    found.extend(case.body for case in getattr(node, "cases", []))
    return found


def stored_names(node: ast.AST) -> Iterator[str]:
    """The names that a node binds: by assignment, as a loop's target, in a ``with`` line, in a comprehension."""
    for part in walk(node):
        if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store):
            yield part.id


def reads(node: ast.AST, name: str) -> bool:
    """Whether a name is read anywhere in a node."""
    return any(isinstance(n, ast.Name) and n.id == name and isinstance(n.ctx, ast.Load) for n in walk(node))


def is_name(node: ast.AST | None, name: str) -> bool:
    """Whether a node is this name, in any context."""
    return isinstance(node, ast.Name) and node.id == name


_NO_NODES = frozenset(
    "arg asname attr conversion ctx id kind level lineno module n name op ops rest s simple type_comment".split()
)
_LEAVES: frozenset[type[ast.AST]] = frozenset({ast.Constant, ast.Name, ast.Pass})
_CLOSED = _LEAVES | {ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef}
_HOLD_OTHERS = frozenset({ast.arguments, ast.Dict, ast.Global, ast.Nonlocal, ast.MatchMapping, ast.MatchClass})
"""Their lists hold None or names as well."""
_CHILDREN: dict[type[ast.AST], tuple[str, ...]] = dict.fromkeys(_LEAVES, ())


def _push_children(stack: list[ast.AST], node: ast.AST) -> None:
    kind = node.__class__
    fields = _CHILDREN.get(kind)
    if fields is None:
        fields = _CHILDREN[kind] = tuple(name for name in kind._fields if name not in _NO_NODES)
    for name in fields:
        child = getattr(node, name, None)
        if child.__class__ is list:
            if child:
                stack += [item for item in child if isinstance(item, ast.AST)] if kind in _HOLD_OTHERS else child
        elif isinstance(child, ast.AST):
            stack.append(child)
