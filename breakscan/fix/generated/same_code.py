"""Compares a function with one that a program has made from it."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from breakscan.source.walking import FunctionNode

_IGNORED = frozenset({"ctx", "kind", "type_comment"})


@dataclass(slots=True)
class Renaming:
    """The names and texts that the program replaces: ``Detr`` by ``RTDetr``, and ``detr`` by ``rt_detr``.

    ``learned`` holds those that occurred.
    """

    old: str = ""
    new: str = ""
    learned: dict[str, str] = field(default_factory=dict)

    @staticmethod
    def of_classes(old: str, new: str) -> Renaming:
        """The renaming of a class: without the end that both names have in common."""
        common = 0
        while common < min(len(old), len(new)) and old[-1 - common] == new[-1 - common]:
            common += 1
        return Renaming(old[: len(old) - common], new[: len(new) - common])

    def renames(self, before: str, after: str) -> bool:
        """Whether one text is the other, with the names that are replaced."""
        if not self.old or _folded(before).replace(_folded(self.old), _folded(self.new)) != _folded(after):
            return False
        return self.learned.setdefault(before, after) == after

    def applied(self, text: str) -> str:
        """A text with what was learned replaced."""
        known = sorted(self.learned, key=len, reverse=True)
        pattern = "|".join(rf"(?<!\w){re.escape(one)}(?!\w)" for one in known)
        return re.sub(pattern, lambda found: self.learned[found[0]], text) if known else text


def code_of(function: FunctionNode) -> Sequence[ast.AST]:
    """The statements of a function without its documentation."""
    if isinstance(function, ast.Lambda):
        return [function.body]
    is_documented = ast.get_docstring(function, clean=False) is not None
    return function.body[is_documented:]


def same_nodes(
    before: Sequence[ast.AST], after: Sequence[ast.AST], renaming: Renaming
) -> list[tuple[ast.AST, ast.AST]] | None:
    """The pairs of nodes of code that is the same but for a renaming; None if it is not the same."""
    pairs: list[tuple[ast.AST, ast.AST]] = []
    pending: list[tuple[object, object]] = [(list(before), list(after))]
    while pending:
        one, other = pending.pop()
        if type(one) is not type(other):
            return None
        if isinstance(one, list) and isinstance(other, list):
            if len(one) != len(other):
                return None
            pending += zip(one, other, strict=True)
        elif isinstance(one, ast.AST) and isinstance(other, ast.AST):
            pairs.append((one, other))
            pending += zip(_fields(one), _fields(other), strict=True)
        elif one != other and not (isinstance(one, str) and isinstance(other, str) and renaming.renames(one, other)):
            return None
    return pairs


def _fields(node: ast.AST) -> Iterator[object]:
    return (getattr(node, name, None) for name in node._fields if name not in _IGNORED)


def _folded(text: str) -> str:
    return text.lower().replace("_", "")
