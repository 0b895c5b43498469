"""Code as it stands in a sentence."""

from __future__ import annotations

import libcst as cst

from breakscan.trees.build import copied
from breakscan.trees.spot import Spot


def plain(spot: Spot, node: cst.CSTNode) -> str:
    """The text of a node on one line, without parentheses around it: what is equal here means the same."""
    text = spot.code(copied(node) if isinstance(node, cst.BaseExpression) else node)
    return " ".join(text.split())
