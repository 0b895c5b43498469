"""The dotted names of imported objects, judged by the imports of the file.  Decorators and bases have no facts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache

import libcst as cst

from breakscan.fix.support.names import written
from breakscan.fix.support.walking import nodes_of

MOST_KEPT = 16
"""For how many files the imported names are kept."""


def import_name(module: cst.Module, node: cst.BaseExpression) -> str | None:
    """The dotted name of an imported object; None if the first name of the expression is not only imported."""
    parts: list[str] = []
    while isinstance(node, cst.Attribute):
        parts.insert(0, node.attr.value)
        node = node.value
    if not isinstance(node, cst.Name):
        return None
    imported = imported_names(module).get(node.value)
    return ".".join([imported, *parts]) if imported is not None else None


def is_within(name: str, packages: Iterable[str]) -> bool:
    """Whether a dotted name is one of others, or below one."""
    return any(name == one or name.startswith(f"{one}.") for one in packages)


@lru_cache(maxsize=MOST_KEPT)
def imported_names(module: cst.Module) -> Mapping[str, str]:
    """The dotted name of each name that imports anywhere in a file bind, and nothing else at its top level."""
    found: dict[str, str] = {}
    for one in nodes_of(module, cst.Import, cst.ImportFrom):
        if isinstance(one, cst.Import):
            for alias in one.names:
                if alias.evaluated_alias is not None:
                    found[alias.evaluated_alias] = alias.evaluated_name
                else:
                    package = alias.evaluated_name.split(".")[0]
                    found[package] = package
        elif isinstance(one, cst.ImportFrom) and not isinstance(one.names, cst.ImportStar):
            package = cst.Module([]).code_for_node(one.module) if one.module is not None else ""
            for alias in one.names:
                found[alias.evaluated_alias or alias.evaluated_name] = (
                    f"{'.' * len(one.relative)}{package}.{alias.evaluated_name}"
                )
    for statement in module.body:
        for name in _bound_by(statement):
            found.pop(name, None)
    return found


def _bound_by(statement: cst.BaseStatement) -> list[str]:
    """The names that a statement of the top level binds, other than by an import."""
    if isinstance(statement, cst.FunctionDef | cst.ClassDef):
        return [statement.name.value]
    if isinstance(statement, cst.SimpleStatementLine):
        return written([one for one in statement.body if not isinstance(one, cst.Import | cst.ImportFrom)])
    return []
