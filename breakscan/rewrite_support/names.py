"""Which names a piece of code reads and which it binds."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

import libcst as cst


class _Names(cst.CSTVisitor):
    def __init__(self) -> None:
        self.read: dict[str, None] = {}
        self.bound: dict[str, None] = {}

    def _bind(self, target: cst.CSTNode) -> None:
        if isinstance(target, cst.Name):
            self.bound[target.value] = None
        elif isinstance(target, cst.Tuple | cst.List):
            for element in target.elements:
                self._bind(element.value)
        elif isinstance(target, cst.StarredElement):
            self._bind(target.value)
        else:
            target.visit(self)

    def visit_Name(self, node: cst.Name) -> None:
        self.read[node.value] = None

    def visit_Attribute(self, node: cst.Attribute) -> bool:
        node.value.visit(self)
        return False

    def visit_Arg(self, node: cst.Arg) -> bool:
        node.value.visit(self)
        return False

    def visit_AssignTarget(self, node: cst.AssignTarget) -> bool:
        self._bind(node.target)
        return False

    def visit_AnnAssign(self, node: cst.AnnAssign) -> bool:
        self._bind(node.target)
        if node.value is not None:
            node.value.visit(self)
        return False

    def visit_AugAssign(self, node: cst.AugAssign) -> None:
        self._bind(node.target)

    def visit_NamedExpr(self, node: cst.NamedExpr) -> bool:
        self._bind(node.target)
        node.value.visit(self)
        return False

    def visit_For(self, node: cst.For) -> bool:
        self._bind(node.target)
        for part in (node.iter, node.body, node.orelse):
            if part is not None:
                part.visit(self)
        return False

    def visit_CompFor(self, node: cst.CompFor) -> bool:
        self._bind(node.target)
        node.iter.visit(self)
        for test in node.ifs:
            test.visit(self)
        if node.inner_for_in is not None:
            node.inner_for_in.visit(self)
        return False

    def visit_AsName(self, node: cst.AsName) -> bool:
        self._bind(node.name)
        return False

    def visit_ImportAlias(self, node: cst.ImportAlias) -> bool:
        if node.asname is not None:
            self._bind(node.asname.name)
        else:
            name = node.evaluated_name.split(".")[0]
            self.bound[name] = None
        return False

    def visit_Param(self, node: cst.Param) -> bool:
        self.bound[node.name.value] = None
        if node.default is not None:
            node.default.visit(self)
        return False

    def visit_FunctionDef(self, node: cst.FunctionDef) -> bool:
        self.bound[node.name.value] = None
        node.params.visit(self)
        node.body.visit(self)
        return False

    def visit_ClassDef(self, node: cst.ClassDef) -> None:
        self.bound[node.name.value] = None

    def visit_Del(self, node: cst.Del) -> bool:
        self._bind(node.target)
        return False


MOST_KEPT = 2_048
"""For how many nodes the names are cached: rewrites often ask about the same function."""


def _names(nodes: cst.CSTNode | Iterable[cst.CSTNode]) -> _Names:
    if isinstance(nodes, cst.CSTNode):
        return _names_of_one(nodes)
    found = _Names()
    for node in nodes:
        node.visit(found)
    return found


@lru_cache(maxsize=MOST_KEPT)
def _names_of_one(node: cst.CSTNode) -> _Names:
    found = _Names()
    node.visit(found)
    return found


def read(nodes: cst.CSTNode | Iterable[cst.CSTNode]) -> list[str]:
    """The names that code reads, in order, each once, including those in inner functions and comprehensions."""
    return list(_names(nodes).read)


def written(nodes: cst.CSTNode | Iterable[cst.CSTNode]) -> list[str]:
    """The names that code binds: by assignment, ``for``, ``with``, ``import``, ``def``, ``:=`` or ``del``, in order.

    Names of inner functions and comprehensions are included, so the result may contain too many names, never too few.
    """
    return list(_names(nodes).bound)
