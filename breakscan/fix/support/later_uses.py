"""The uses of names outside one of the statements of a function."""

from __future__ import annotations

from collections.abc import Collection

import libcst as cst

from breakscan.fix.support.context import RewriteContext
from breakscan.fix.support.names import read


def is_read_outside(context: RewriteContext, name: str, statement: cst.CSTNode) -> bool:
    """True if a name is read by other statements of the function."""
    reads = _Places(name, [statement])
    context.function.body.visit(reads)
    return reads.runs_later or bool(reads.found)


def is_needed_outside(context: RewriteContext, name: str, *statements: cst.CSTNode) -> bool:
    """True if code outside some statements may read the value that the first of them gives to a name.

    It may not if each reader assigns the name before it reads it: a temporary that several statements use.
    """
    reads = _Places(name, statements)
    context.function.body.visit(reads)
    return reads.runs_later or any(not _is_assigned_first(context, name, one, statements[0]) for one in reads.found)


def _is_assigned_first(context: RewriteContext, name: str, read_at: cst.CSTNode, statement: cst.CSTNode) -> bool:
    """True if each way to a read passes an assignment to its name, with no way from it through the statement."""
    own = {id(statement), *(id(one) for one in context.around(statement))}
    inner, above = read_at, context.parent(read_at)
    while inner is not context.function and above is not None:
        if isinstance(above, cst.IndentedBlock):
            if id(inner) in own:
                return False
            place = next(place for place, one in enumerate(above.body) if one is inner)
            for one in reversed(above.body[:place]):
                if id(one) in own:
                    return False
                if isinstance(one, cst.SimpleStatementLine) and _assigns(one, name):
                    return True
        inner, above = above, context.parent(above)
    return False


def _assigns(line: cst.SimpleStatementLine, name: str) -> bool:
    """True if a line assigns a name, by itself and not as part of a condition."""
    return any(
        isinstance(target.target, cst.Name) and target.target.value == name
        for small in line.body
        if isinstance(small, cst.Assign)
        for target in small.targets
    )


class _Places(cst.CSTVisitor):
    """Finds reads of a name outside some statements, by code that runs later."""

    def __init__(self, name: str, but: Collection[cst.CSTNode]) -> None:
        self.name = name
        self.but = but
        self.found: list[cst.CSTNode] = []
        self.runs_later = False
        self._in_line = False

    def on_visit(self, node: cst.CSTNode) -> bool:
        if node in self.but:
            return False
        if isinstance(node, cst.Global | cst.Nonlocal):
            self.runs_later |= any(item.name.value == self.name for item in node.names)
        elif isinstance(node, cst.FunctionDef | cst.ClassDef | cst.Lambda | cst.GeneratorExp):
            self.runs_later |= self.name in read(node)
        elif self._may_be_read(node) and self.name in read(node):
            self.found.append(node)
        self._in_line |= isinstance(node, cst.SimpleStatementLine)
        return True

    def _may_be_read(self, node: cst.CSTNode) -> bool:
        """True if a node is a line, or an expression of the head of a compound statement."""
        return not self._in_line and isinstance(node, cst.SimpleStatementLine | cst.BaseExpression)

    def on_leave(self, original_node: cst.CSTNode) -> None:
        if isinstance(original_node, cst.SimpleStatementLine):
            self._in_line = False
