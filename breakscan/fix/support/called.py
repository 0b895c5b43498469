"""What a call calls, and what it passes."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

import libcst as cst

from breakscan.fix.support import matchers as m
from breakscan.fix.support.context import RewriteContext
from breakscan.fix.support.names import written
from breakscan.fix.support.walking import findall

_GLOBALS = m.Call(m.Name("globals"))
_SETS_GLOBALS = (
    m.AssignTarget(m.Subscript(value=_GLOBALS | m.Attribute(attr=m.Name("__dict__"))))
    | m.Call(m.Attribute(value=_GLOBALS))
    | m.AssignTarget(m.Attribute(m.Name("builtins")))
)


def called(context: RewriteContext, node: cst.Call) -> tuple[str | None, str | None]:
    """The dotted name of the function that a call calls, or the name of the tensor method; None if unknown."""
    if (method := context.method(node)) is not None:
        return None, method
    name = context.dotted(node.func)
    if isinstance(node.func, cst.Name) and (name is None or name == node.func.value):
        name = f"builtins.{node.func.value}" if is_builtin(context, node.func.value, node) else None
    return name, None


def is_builtin(context: RewriteContext, name: str, node: cst.CSTNode) -> bool:
    """Whether a builtin's name is known to have no other meaning at a node."""
    bound = _bound_at_top(context.tree.module)
    return "*" not in bound and name not in {*bound, *_bound_around(context, node)}


def only_argument(node: cst.CSTNode) -> cst.BaseExpression | None:
    """The argument of a call with a single one, passed by position."""
    if not isinstance(node, cst.Call) or len(node.args) != 1:
        return None
    arg = node.args[0]
    return None if arg.keyword is not None or arg.star else arg.value


def _bound_around(context: RewriteContext, node: cst.CSTNode) -> Iterator[str]:
    for one in context.around(node):
        if isinstance(one, cst.FunctionDef):
            yield from written(one)


@lru_cache(maxsize=4)
def _bound_at_top(module: cst.Module) -> frozenset[str]:
    """The names that the top level of a file binds; ``*`` where it may bind others too."""
    found: set[str] = set()
    for one in module.body:
        if isinstance(one, cst.FunctionDef | cst.ClassDef):
            found.add(one.name.value)
            continue
        found |= set(written(one))
        for small in one.body if isinstance(one, cst.SimpleStatementLine) else ():
            if isinstance(small, cst.ImportFrom) and isinstance(small.names, cst.ImportStar):
                found.add("*")
    if findall(module, _SETS_GLOBALS):
        found.add("*")
    return frozenset(found)
