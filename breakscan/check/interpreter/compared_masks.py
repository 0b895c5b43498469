"""Masks that are compared out of a name: ``keep = target != -100`` and ``logits[keep]`` show that both are tensors."""

from __future__ import annotations

import ast


class ComparedMasks:
    """The comparisons of one function, and what they index."""

    def __init__(self) -> None:
        self._compared: dict[str, set[str]] = {}
        """Names that hold a comparison, each with the names that are compared there."""
        self._indexed: list[tuple[ast.expr, ast.expr]] = []

    def assigned(self, node: ast.Assign) -> None:
        if len(node.targets) == 1 and isinstance(node.targets[0], ast.Name) and _is_mask(node.value):
            self._compared.setdefault(node.targets[0].id, set()).update(_sides(node.value))

    def subscript(self, node: ast.Subscript) -> None:
        self._indexed.append((node.value, node.slice))

    def tensors(self) -> set[str]:
        """The names that only a tensor can be: lists and numbers give no mask, and take none."""
        found: set[str] = set()
        for owner, index in self._indexed:
            if isinstance(index, ast.UnaryOp) and isinstance(index.op, ast.Invert):
                index = index.operand
            if _is_mask(index):
                compared = _sides(index)
            elif isinstance(index, ast.Name) and index.id in self._compared:
                compared = self._compared[index.id] | {index.id}
            else:
                continue
            found |= compared
            if isinstance(owner, ast.Name):
                found.add(owner.id)
        return found


def _is_mask(node: ast.expr) -> bool:
    """Whether it compares, element by element if the names are tensors."""
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Invert):
        return _is_mask(node.operand)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitAnd | ast.BitOr):
        return _is_mask(node.left) and _is_mask(node.right)
    plain = ast.In | ast.NotIn | ast.Is | ast.IsNot
    return isinstance(node, ast.Compare) and len(node.ops) == 1 and not isinstance(node.ops[0], plain)


def _sides(node: ast.expr) -> set[str]:
    """The names on the left sides of comparisons: the right side is often a number."""
    if isinstance(node, ast.UnaryOp):
        return _sides(node.operand)
    if isinstance(node, ast.BinOp):
        return _sides(node.left) | _sides(node.right)
    return {node.left.id} if isinstance(node, ast.Compare) and isinstance(node.left, ast.Name) else set()
