"""The names that a piece of code reads from outside, and the attributes that it reads."""

from __future__ import annotations

import ast
import symtable
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from breakscan.source.walking import walk

LAZY_ANNOTATIONS = "from __future__ import annotations"
"""Leaves the names in annotations unread."""


@dataclass(frozen=True, slots=True)
class CodeNames:
    """``free`` are read and not bound by the code; ``attributes`` those of any object, ``of`` those of a name."""

    free: tuple[str, ...]
    attributes: frozenset[str]
    of: Mapping[str, frozenset[str]]


def names_in(code: str) -> CodeNames:
    """Those of statements at the left margin."""
    tree = ast.parse(code)
    reads = [node for node in walk(tree) if isinstance(node, ast.Attribute)]
    of: dict[str, set[str]] = {}
    for node in reads:
        if isinstance(node.value, ast.Name):
            of.setdefault(node.value.id, set()).add(node.attr)
    table = symtable.symtable(f"{LAZY_ANNOTATIONS}\n{code}", "<code>", "exec")
    bound = {one.get_name() for one in table.get_symbols() if one.is_assigned() or one.is_imported()}
    free = dict.fromkeys(name for name in _read(table, is_top=True) if name not in bound)
    texts = (n.value for n in walk(tree) if isinstance(n, ast.Constant) and isinstance(n.value, str))
    # getattr(self, "scale")
    attributes = frozenset(node.attr for node in reads) | frozenset(text for text in texts if text.isidentifier())
    return CodeNames(tuple(free), attributes, {name: frozenset(found) for name, found in of.items()})


def _read(table: symtable.SymbolTable, *, is_top: bool = False) -> Iterator[str]:
    for symbol in table.get_symbols():
        if symbol.is_global() or (is_top and symbol.is_referenced()):
            yield symbol.get_name()
    for inner in table.get_children():
        yield from _read(inner)
