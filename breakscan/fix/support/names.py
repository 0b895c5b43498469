"""The names that a piece of code reads and those that it binds."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Any

import libcst as cst

from breakscan.fix.support.walking import code_children

MOST_KEPT = 2_048
"""For how many nodes the names are cached: rewrites often ask about the same function."""


class _Names:
    def __init__(self) -> None:
        self.read: dict[str, None] = {}
        self.bound: dict[str, None] = {}

    def add(self, node: cst.CSTNode | None) -> None:
        """Adds the names of a node and of those below it."""
        if node is None:
            return
        special = _SPECIAL.get(type(node))
        if special is None:
            for child in code_children(node):
                self.add(child)
        else:
            special(self, node)

    def bind(self, target: cst.CSTNode) -> None:
        if isinstance(target, cst.Name):
            self.bound[target.value] = None
        elif isinstance(target, cst.Tuple | cst.List):
            for element in target.elements:
                self.bind(element.value)
        elif isinstance(target, cst.StarredElement):
            self.bind(target.value)
        else:
            self.add(target)


def _name(names: _Names, node: cst.Name) -> None:
    names.read[node.value] = None


def _value(names: _Names, node: cst.Attribute | cst.Arg) -> None:
    names.add(node.value)


def _target(names: _Names, node: cst.AssignTarget | cst.Del) -> None:
    names.bind(node.target)


def _assignment(names: _Names, node: cst.NamedExpr) -> None:
    names.bind(node.target)
    names.add(node.value)


def _annotated(names: _Names, node: cst.AnnAssign) -> None:
    names.bind(node.target)
    names.add(node.annotation)
    names.add(node.value)


def _augmented(names: _Names, node: cst.AugAssign) -> None:
    names.bind(node.target)
    names.add(node.target)
    names.add(node.value)


def _for(names: _Names, node: cst.For) -> None:
    names.bind(node.target)
    for part in (node.iter, node.body, node.orelse):
        names.add(part)


def _comprehension(names: _Names, node: cst.CompFor) -> None:
    names.bind(node.target)
    for part in (node.iter, *node.ifs, node.inner_for_in):
        names.add(part)


def _capture(names: _Names, node: cst.MatchAs | cst.MatchStar) -> None:
    if node.name is not None:
        names.bind(node.name)
    names.add(node.pattern if isinstance(node, cst.MatchAs) else None)


def _mapping(names: _Names, node: cst.MatchMapping) -> None:
    if node.rest is not None:
        names.bind(node.rest)
    for element in node.elements:
        names.add(element)


def _as_name(names: _Names, node: cst.AsName) -> None:
    names.bind(node.name)


def _import(names: _Names, node: cst.ImportAlias) -> None:
    if node.asname is not None:
        names.bind(node.asname.name)
    else:
        names.bound[node.evaluated_name.split(".")[0]] = None


def _parameter(names: _Names, node: cst.Param) -> None:
    names.bound[node.name.value] = None
    names.add(node.annotation)
    names.add(node.default)


def _function(names: _Names, node: cst.FunctionDef) -> None:
    names.bound[node.name.value] = None
    for part in (*node.decorators, node.params, node.returns, node.body):
        names.add(part)


def _class(names: _Names, node: cst.ClassDef) -> None:
    names.bound[node.name.value] = None
    for child in code_children(node):
        names.add(child)


_SPECIAL: dict[type[cst.CSTNode], Callable[[_Names, Any], None]] = {
    cst.AnnAssign: _annotated,
    cst.Arg: _value,
    cst.AsName: _as_name,
    cst.AssignTarget: _target,
    cst.Attribute: _value,
    cst.AugAssign: _augmented,
    cst.ClassDef: _class,
    cst.CompFor: _comprehension,
    cst.Del: _target,
    cst.For: _for,
    cst.FunctionDef: _function,
    cst.ImportAlias: _import,
    cst.MatchAs: _capture,
    cst.MatchMapping: _mapping,
    cst.MatchStar: _capture,
    cst.Name: _name,
    cst.NamedExpr: _assignment,
    cst.Param: _parameter,
}
"""The nodes that bind names, or that hold names which are no variables."""


@lru_cache(maxsize=MOST_KEPT)
def _names_of_one(node: cst.CSTNode) -> _Names:
    found = _Names()
    found.add(node)
    return found


def _names(nodes: cst.CSTNode | Iterable[cst.CSTNode]) -> _Names:
    if isinstance(nodes, cst.CSTNode):
        return _names_of_one(nodes)
    found = _Names()
    for node in nodes:
        found.add(node)
    return found


def read(nodes: cst.CSTNode | Iterable[cst.CSTNode]) -> list[str]:
    """The names that code reads, in order, each once, including those in inner functions and comprehensions."""
    return list(_names(nodes).read)


def written(nodes: cst.CSTNode | Iterable[cst.CSTNode]) -> list[str]:
    """The names that code binds: by assignment, ``for``, ``with``, ``case``, ``import``, ``def``, ``:=`` or ``del``.

    Names of inner functions and comprehensions are included, so the result may contain too many names, never too few.
    """
    return list(_names(nodes).bound)
