"""Puts edits into the text of a file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import libcst as cst
from libcst.codemod import CodemodContext
from libcst.codemod.visitors import AddImportsVisitor

from breakscan.rewrite_support.context import FileTree
from breakscan.rewrite_support.edit import Edit, Replacement


def overlap(tree: FileTree, one: Edit, other: Edit) -> bool:
    """Whether two edits touch the same statement, so that the second must be worked out anew behind the first."""
    spans = [tree.span(_statement(tree, node)) for node in other.replace]
    for node in one.replace:
        start, end = (at := tree.span(_statement(tree, node)))[:2], at[2:]
        if any(start < (span[2:]) and span[:2] < end for span in spans):
            return True
    return False


def _statement(tree: FileTree, node: cst.CSTNode) -> cst.CSTNode:
    while not isinstance(node, cst.BaseSmallStatement | cst.BaseCompoundStatement | cst.SimpleStatementLine):
        above = tree.parents.get(node)
        if above is None:
            return node
        node = above
    return node


class _Replacer(cst.CSTTransformer):
    def __init__(self, replace: Mapping[cst.CSTNode, Replacement], above: Mapping[cst.CSTNode, list[cst.CSTNode]]):
        super().__init__()
        self.replace = replace
        self.above = above

    def on_leave(self, original_node: cst.CSTNodeT, updated_node: cst.CSTNodeT) -> cst.CSTNode:  # type: ignore[override]
        # What libcst's types do not say: a visitor may put a node of another type in a node's place.
        left: cst.CSTNode = updated_node
        if original_node in self.replace:
            new = self.replace[original_node]
            if new is None:
                return cst.RemoveFromParent()  # type: ignore[return-value]
            if not isinstance(new, cst.CSTNode):
                return cst.FlattenSentinel([*self.above.get(original_node, ()), *new])  # type: ignore[return-value]
            left = new
        if original_node in self.above:
            return cst.FlattenSentinel([*self.above[original_node], left])  # type: ignore[return-value]
        return left


def applied(tree: FileTree, edits: Sequence[Edit], imports: Sequence[str]) -> str:
    """The text with the edits in it, and the imports that the new code needs.  The edits must not overlap."""
    replace = {node: new for edit in edits for node, new in edit.replace.items()}
    above: dict[cst.CSTNode, list[cst.CSTNode]] = {}
    there: set[str] = set()
    for edit in edits:
        for statement in edit.above:
            code = tree.module.code_for_node(statement)
            if code not in there:
                there.add(code)
                above.setdefault(_outermost(tree, next(iter(edit.replace))), []).append(statement)
    module = tree.module.visit(_Replacer(replace, above))
    if imports:
        context = CodemodContext()
        for name in imports:
            AddImportsVisitor.add_needed_import(context, name)
        module = AddImportsVisitor(context).transform_module(module)
    return module.code


def _outermost(tree: FileTree, node: cst.CSTNode) -> cst.CSTNode:
    while not isinstance(above := tree.parents[node], cst.Module):
        node = above
    return node
