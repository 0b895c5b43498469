"""Classes that derive from ``TypedDict``."""

from __future__ import annotations

import ast

from breakscan.check.project.imports import Project
from breakscan.check.project.index import ClassInfo

TYPED_DICT = "typing.TypedDict"
_BASES = frozenset({TYPED_DICT, "typing_extensions.TypedDict"})


def has_optional_keys(project: Project, owner: ClassInfo) -> bool:
    """Whether a class is a TypedDict in which a key may be missing."""
    if _BASES.isdisjoint(project.outside_bases(owner)):
        return False
    return any(map(_makes_optional, project.bases_of(owner)))


def _makes_optional(owner: ClassInfo) -> bool:
    fields = [node.annotation for node in owner.node.body if isinstance(node, ast.AnnAssign)]
    asked = [_last_name(field.value) for field in fields if isinstance(field, ast.Subscript)]
    partial = any(
        keyword.arg == "total" and isinstance(keyword.value, ast.Constant) and keyword.value.value is False
        for keyword in owner.node.keywords
    )
    return "NotRequired" in asked or (partial and asked.count("Required") < len(fields))


def _last_name(node: ast.expr) -> str | None:
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else None
