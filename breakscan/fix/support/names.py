"""The names that a piece of code reads and those that it binds."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import Any

import libcst as cst

from breakscan.fix.support.walking import code_children

MOST_KEPT = 2_048
"""For how many nodes the names are cached: rewrites often ask about the same function."""


_TEXTS: dict[type[cst.CSTNode], tuple[str, str]] = {
    cst.AnnAssign: ("target", "annotation value"),
    cst.Arg: ("", "value"),
    cst.AsName: ("name", ""),
    cst.AssignTarget: ("target", ""),
    cst.Attribute: ("", "value"),
    cst.AugAssign: ("target", "target value"),
    cst.ClassDef: ("name", "decorators bases keywords body"),
    cst.CompFor: ("target", "iter ifs inner_for_in"),
    cst.Del: ("target", ""),
    cst.For: ("target", "iter body orelse"),
    cst.FunctionDef: ("name", "decorators params returns body"),
    cst.MatchAs: ("name", "pattern"),
    cst.MatchMapping: ("rest", "elements"),
    cst.MatchStar: ("name", ""),
    cst.NamedExpr: ("target", "value"),
    cst.Param: ("name", "annotation default"),
}
"""The fields of nodes that bind names, and of those that hold names which are no variables, with the fields to read."""
_FIELDS = {kind: (binds.split(), reads.split()) for kind, (binds, reads) in _TEXTS.items()}


class _Names:
    def __init__(self) -> None:
        self.read: dict[str, None] = {}
        self.bound: dict[str, None] = {}

    def add(self, node: Any) -> None:
        """Adds the names of a node, or of several, and of those below."""
        kind = type(node)
        if kind is cst.Name:
            self.read[node.value] = None
        elif kind is cst.ImportAlias:
            self.bound[node.evaluated_alias or node.evaluated_name.split(".")[0]] = None
        elif kind in _FIELDS:
            binds, reads = _FIELDS[kind]
            for field in binds:
                self.bind(getattr(node, field))
            for field in reads:
                self.add(getattr(node, field))
        elif node is not None:
            for child in node if kind in (list, tuple) else code_children(node):
                self.add(child)

    def bind(self, target: cst.CSTNode | None) -> None:
        if isinstance(target, cst.Name):
            self.bound[target.value] = None
        elif isinstance(target, cst.Tuple | cst.List):
            for element in target.elements:
                self.bind(element.value)
        elif isinstance(target, cst.StarredElement):
            self.bind(target.value)
        else:
            self.add(target)


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
