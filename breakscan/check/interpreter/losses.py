"""Whether the loss modules of a file return one number, as they do unless they are told otherwise."""

from __future__ import annotations

import ast
from functools import lru_cache

from breakscan.rulebook.torch_facts.table import REDUCES, SETS_THE_REDUCTION
from breakscan.source.walking import walk

MOST_KEPT = 64
"""For how many files it is kept."""


@lru_cache(maxsize=MOST_KEPT)
def reduces_losses(tree: ast.Module) -> bool:
    """Whether no code of a file shows that a loss may be kept for each element: by an argument, or an attribute."""
    for node in walk(tree):
        if isinstance(node, ast.Call) and _name(node.func).endswith("Loss"):
            if len(node.args) > 1 or any(isinstance(one, ast.Starred) for one in node.args):
                return False
            for keyword in node.keywords:
                if keyword.arg is None:
                    return False
                reduced = isinstance(keyword.value, ast.Constant) and keyword.value.value in REDUCES
                if keyword.arg in SETS_THE_REDUCTION and not reduced:
                    return False
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) and node.attr in SETS_THE_REDUCTION:
            return False
        elif isinstance(node, ast.Constant) and node.value in SETS_THE_REDUCTION:
            # `setattr(loss, "reduction", ...)`, `{"reduction": ...}`
            return False
    return True


def _name(node: ast.expr) -> str:
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""
