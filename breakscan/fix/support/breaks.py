"""Other breaks of the graph at the place of an edit, with which the edit would not help."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from breakscan.fix.support.context import RewriteContext
from breakscan.fix.support.edit import Declined
from breakscan.model.findings import Verdict

_READS = "BRK2"
"""The start of the ids of rules about Python numbers that are read from tensors."""


def refuse_breaks_in(context: RewriteContext, node: cst.CSTNode, made: cst.CSTNode | None = None) -> None:
    """Declines if code breaks in a node of the file and is still there in ``made``, the code that replaces it."""
    text = context.code(node if made is None else made)
    for other, rule in _others(context):
        if (other is node or node in context.around(other)) and (code := context.code(other)) in text:
            raise Declined(f"`{code}` in it still breaks the graph ({rule}): rewrite that first")


def refuse_reads_of(context: RewriteContext, node: cst.CSTNode) -> None:
    """Declines if the value of a node is read as a Python number, which still breaks."""
    above = context.parent(node)
    while isinstance(above, cst.BaseExpression | cst.Arg):
        for other, rule in _others(context):
            if other is above and rule.startswith(_READS):
                raise Declined(f"`{context.code(other)}` would still break the graph ({rule}): rewrite that first")
        above = context.parent(above)


def _others(context: RewriteContext) -> Iterator[tuple[cst.CSTNode, str]]:
    for one in context.others:
        if one is context.finding or one.verdict not in (Verdict.SPLITS, Verdict.EAGER):
            continue
        node = context.tree.at(one.site)
        if node is not None:
            yield node, one.rule
