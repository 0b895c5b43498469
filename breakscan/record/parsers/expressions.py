"""Python expressions in text that torch writes, or that a damaged log says it wrote."""

from __future__ import annotations

import ast

_DEEPEST = 100
"""Levels of nesting that ``ast.unparse`` takes from any stack that it is called in."""


def parse_expression(text: str) -> ast.expr | None:
    """The expression; None for what is none, or is nested too deeply to be one of torch's."""
    try:
        tree = ast.parse(text, mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    nodes: list[ast.AST] = [tree]
    for _ in range(_DEEPEST):
        nodes = [child for node in nodes for child in ast.iter_child_nodes(node)]
        if not nodes:
            return tree
    return None
