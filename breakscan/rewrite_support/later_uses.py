"""How a function uses names outside one of its statements."""

from __future__ import annotations

from collections.abc import Iterable

import libcst as cst

from breakscan.rewrite_support.context import RewriteContext
from breakscan.rewrite_support.names import read


def is_read_outside(context: RewriteContext, name: str, statement: cst.CSTNode) -> bool:
    """Whether a name is read by other statements of the function."""
    reads = _Reads(name, statement)
    context.function.body.visit(reads)
    return reads.found


def changed_in_place(context: RewriteContext, names: Iterable[str], statement: cst.CSTNode) -> str | None:
    """The first of some names that is changed in place after a statement, or anywhere in a loop around it."""
    found = _InPlace(context, set(names), statement)
    context.function.body.visit(found)
    return found.name


class _Reads(cst.CSTVisitor):
    """Whether a name is read outside a statement."""

    def __init__(self, name: str, but: cst.CSTNode) -> None:
        self.name = name
        self.but = but
        self.found = False

    def on_visit(self, node: cst.CSTNode) -> bool:
        if node is self.but or self.found:
            return False
        if isinstance(node, cst.SimpleStatementLine | cst.BaseExpression) and self.name in read(node):
            self.found = True
        return not isinstance(node, cst.SimpleStatementLine)


class _InPlace(cst.CSTVisitor):
    """The first of some names that is changed in place after a statement, or anywhere in a loop around it."""

    def __init__(self, context: RewriteContext, names: set[str], node: cst.CSTNode) -> None:
        self.context = context
        self.names = names
        self.node = node
        self.line = (
            0 if context.enclosing(cst.For, node) or context.enclosing(cst.While, node) else context.tree.span(node)[2]
        )
        self.name: str | None = None

    def on_visit(self, node: cst.CSTNode) -> bool:
        if node is self.node:
            return False
        target: cst.BaseExpression | None = None
        if isinstance(node, cst.AugAssign | cst.AssignTarget):
            target = node.target if isinstance(node, cst.AugAssign) or isinstance(node.target, cst.Subscript) else None
        elif isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute):
            name = node.func.attr.value
            if name.endswith("_") and not name.endswith("__"):
                target = node.func.value
        while isinstance(target, cst.Subscript | cst.Attribute):
            target = target.value
        if (
            isinstance(target, cst.Name)
            and target.value in self.names
            and self.context.tree.span(target)[0] > self.line
        ):
            self.name = target.value
        return True
