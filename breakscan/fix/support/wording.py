"""Code as it is shown in a sentence."""

from __future__ import annotations

import libcst as cst

from breakscan.fix.support.build import copied
from breakscan.fix.support.context import RewriteContext


def plain(context: RewriteContext, node: cst.CSTNode) -> str:
    """The text of a node on one line, without parentheses around it: equal texts mean the same."""
    text = context.code(copied(node) if isinstance(node, cst.BaseExpression) else node)
    return " ".join(text.split())
